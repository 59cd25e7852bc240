"""The line of an agent's log that says why it failed."""

import re

from uwf_git.model.event_words import first_line

ERROR_PREFIX, HINT_PREFIX = "error: ", "hint: "
"""How our own programs, and the kit's agents, begin the lines of an error."""

_SHOWN = 300

# What a program that crashed prints below its error: node's last line and advice, the calls that
# led there (node, Java, Ruby), and Rust's advice.
_BELOW_AN_ERROR = re.compile(
    r"Node\.js v\d[\d.]*$|\(Use `node --trace|note: run with `RUST_BACKTRACE"
    r"|\s+(at|from) \S|\s*\.\.\. \d+ more$"
)
_NODE = re.compile(r"Node\.js v\d[\d.]*$")
# node marks the place in the program, then prints the error.
_MARK = re.compile(r"\s*\^+$")


def find_error_line(log: str) -> str:
    """Return the line of *log* that says why the program ended, or "".

    That is the last one, but the error itself where an interpreter printed more below it.
    """
    lines = [
        line.rstrip()
        for line in log.splitlines()
        if line.strip() and not line.startswith(HINT_PREFIX)
    ]
    if lines and _NODE.match(lines[-1]):
        marks = [index for index, line in enumerate(lines) if _MARK.match(line)]
        lines = lines[: marks[-1] + 2] if marks and marks[-1] + 2 < len(lines) else lines
    for line in reversed(lines):
        if not _BELOW_AN_ERROR.match(line):
            return first_line(line.removeprefix(ERROR_PREFIX))[:_SHOWN]
    return ""
