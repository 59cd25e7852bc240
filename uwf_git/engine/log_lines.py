"""The log of a turn: the output of checks, and the line that says why an agent failed."""

import re

from uwf_git.model.event_folds import first_line

# The output of checks in the log of a turn: a heading with the command, then what it printed.

CHECK = "check"
"""The kind of a failed attempt whose answer a check refused."""

_MARK = "$ "


def write_section(command: str, output: bytes) -> bytes:
    """Return what a check adds to the log; it begins on a line of its own."""
    heading = f"\n{_heading(command)}\n".encode(errors="replace")
    ending = b"" if not output or output.endswith(b"\n") else b"\n"
    return heading + output + ending


def find_last_output(log: str, commands: tuple[str, ...]) -> str:
    places = [(log.rfind(f"\n{_heading(each)}\n"), each) for each in commands]
    place, command = max(places, default=(-1, ""))
    return "" if place < 0 else log[place + len(_heading(command)) + 2 :]


def find_outputs(log: str, commands: tuple[str, ...]) -> str:
    """Return what the checks of an answer printed, each with its heading; "" if nothing."""
    headings = [f"\n{_heading(each)}\n" for each in commands]
    end = len(log)
    told: list[str] = []
    for heading in reversed(headings):
        place = log.rfind(heading, 0, end)
        if place >= 0:
            section = log[place + 1 : end]
            told += [section] if section[len(heading) - 1 :].strip() else []
            # The line break before a heading belongs to it.
            end = place + 1
    return "\n".join(each.strip("\n") for each in reversed(told))


def _heading(command: str) -> str:
    return _MARK + " ".join(command.split())


# The line of an agent's log that says why it failed.

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
_CARETS = re.compile(r"\s*\^+$")


def find_error_line(log: str) -> str:
    """Return the line of *log* that says why the program ended: the error, or the last line."""
    lines = [
        line.rstrip()
        for line in log.splitlines()
        if line.strip() and not line.startswith(HINT_PREFIX)
    ]
    if lines and _NODE.match(lines[-1]):
        marks = [index for index, line in enumerate(lines) if _CARETS.match(line)]
        lines = lines[: marks[-1] + 2] if marks and marks[-1] + 2 < len(lines) else lines
    for line in reversed(lines):
        if not _BELOW_AN_ERROR.match(line):
            return first_line(line.removeprefix(ERROR_PREFIX))[:_SHOWN]
    return ""
