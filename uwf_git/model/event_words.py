"""The words of a thread's commits: what each event says in its subject and its body.

Writers and `uwf verify` both ask here, so a commit can be made again byte for byte. Nothing depends
on the Unicode tables of the Python that runs. Format: FORMAT.md, "Words".
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from uwf_git.model.event_folds import Cause, Standing
from uwf_git.model.limits import render_limit
from uwf_git.model.thread import Event, read_amendment

LONGEST_QUOTE = 2_000
"""The most of a text that a body quotes, in characters."""

# Fields in which roles usually summarize themselves, most telling first.
_TELLING = (
    "summary", "title", "message", "verdict", "reason", "why", "feedback", "decision", "status",
    "result",
)  # fmt: skip
_NOT_PROSE = ("```", "---", "{", "[", "<")

_LONGEST = 200
_MOST_READ = 10_000

_SPACES = "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
_SPACES += "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
# Controls, spaces but U+0020, format characters, surrogates, private use, and U+FFFE and U+FFFF: a
# table of the format, not of Python's Unicode. A string: most commands meet ASCII alone.
_UNPRINTABLE = (
    "[\\x00-\\x1f\\x7f-\\xa0\\xad\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u1680"
    "\\u180e\\u2000-\\u200f\\u2028-\\u202f\\u205f-\\u206f\\u3000\\ud800-\\uf8ff\\ufdd0-\\ufdef"
    "\\ufeff\\ufff9-\\ufffb\\ufffe\\uffff\\U000110bd\\U000110cd\\U00013430-\\U0001343f"
    "\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e007f\\U000f0000-\\U0010ffff]"
)


class Words(NamedTuple):
    """What a commit says, before it is cut and cleaned."""

    said: str
    """The subject, after the role or the event."""

    body: str = ""


def describe_event(before: Standing, event: Event, cause: Cause) -> Words:
    """Return the words of *event*, which follows *before*; splits and joins are below."""
    return _WORDS[event](before, cause)


def describe_start(prompt: str) -> Words:
    """Return the words of the first commit of a thread."""
    return Words(first_line(prompt))


def describe_split(label: str, branches: Sequence[tuple[str, str]]) -> Words:
    """Return the words of a split into *branches*: their labels and threads."""
    lines = [f"{number} {name} {thread}" for number, (name, thread) in enumerate(branches)]
    return Words(f"{label} into {len(branches)}", "\n".join(lines))


def describe_branch(number: int, label: str) -> Words:
    """Return the words of the first commit of a branch."""
    return Words(f"branch {number}, {label}")


def describe_join(label: str, statuses: Sequence[str]) -> Words:
    counts = [f"{statuses.count(each)} {each}" for each in ("completed", "killed")]
    told = ", ".join(count for count in counts if not count.startswith("0 "))
    return Words(f"{label}: {told or 'no branch'}")


def _step(_before: Standing, cause: Cause) -> Words:
    return Words(describe_step(cause.payload["meta"], cause.text), cause.note)


def _attempt(_before: Standing, cause: Cause) -> Words:
    number, error = cause.payload["attempt"], cause.payload["error"]
    return Words(f"attempt {number} failed: {error['message']}", cause.text[-LONGEST_QUOTE:])


def _wait(_before: Standing, cause: Cause) -> Words:
    return Words("waits for a person", cause.text[:LONGEST_QUOTE])


def _fork(before: Standing, cause: Cause) -> Words:
    record = before.record
    return Words(f"from {record.thread} after {count_steps(record.depth)}", cause.note)


def _end(before: Standing, _cause: Cause) -> Words:
    return Words(f"completed after {count_steps(before.record.depth)}")


def _kill(before: Standing, cause: Cause) -> Words:
    return Words(f"killed after {count_steps(before.record.depth)}", cause.note)


def _signalled(
    describe: Callable[[Standing, Mapping[str, Any]], str],
) -> Callable[[Standing, Cause], Words]:
    """Return the words of an event with a Signal: its reason, else what *describe* says."""

    def describe_signal(before: Standing, cause: Cause) -> Words:
        reason: str = cause.payload.get("reason", "")
        return Words(first_line(reason) or first_line(describe(before, cause.payload)), reason)

    return describe_signal


def _describe_patch(_before: Standing, signal: Mapping[str, Any]) -> str:
    return f"changed {', '.join(signal.get('patch', {}))}"


def _describe_amendment(_before: Standing, signal: Mapping[str, Any]) -> str:
    amendment = read_amendment(signal)
    to = "adds to the workflow, now" if signal["action"] == "append" else "workflow"
    parts = [] if amendment.workflow is None else [f"{to} {amendment.workflow}"]
    if amendment.binding:
        parts.append(f"agent of {', '.join(amendment.binding)}")
    parts += [f"{name} is {render_limit(name, value)}" for name, value in amendment.limits.items()]
    return "; ".join(parts)


def _describe_poke(before: Standing, _signal: Mapping[str, Any]) -> str:
    return f"{before.state.role} takes its step again"


_WORDS: Mapping[Event, Callable[[Standing, Cause], Words]] = {
    "step": _step,
    "answer": _step,
    "attempt": _attempt,
    "wait": _wait,
    "pause": _signalled(lambda _before, _signal: "paused"),
    "resume": _signalled(lambda _before, _signal: "resumed"),
    "retry": _signalled(lambda _before, _signal: "may try again"),
    "patch": _signalled(_describe_patch),
    "amend": _signalled(_describe_amendment),
    "poke": _signalled(_describe_poke),
    "fork": _fork,
    "end": _end,
    "kill": _kill,
}


def describe_step(meta: Any, content: str) -> str:
    """Return one line about a result: a summary in its meta, or the beginning of its text."""
    if isinstance(meta, dict):
        for field in _TELLING:
            value = meta.get(field)
            if isinstance(value, str) and first_line(value):
                return first_line(value)
    line = first_line(content)
    if line and not line.startswith(_NOT_PROSE):
        return line
    return _shortened(render_meta(meta))


def needs_text(event: Event, payload: Mapping[str, Any]) -> bool:
    """Check whether the words of a step or an attempt quote its content or its log."""
    if event == "attempt":
        return True
    meta = payload["meta"]
    told = (meta.get(field) for field in _TELLING) if isinstance(meta, dict) else ()
    return not any(isinstance(value, str) and first_line(value) for value in told)


def render_meta(meta: Any) -> str:
    return json.dumps(meta, ensure_ascii=False, separators=(", ", ": "))


def first_line(text: str) -> str:
    """Return the first line of *text* that is not empty, shortened; "" for an empty text."""
    for line in text[:_MOST_READ].splitlines():
        told = line.strip(_SPACES).lstrip("# ")
        if told:
            return _shortened(told)
    return ""


def one_line(text: str) -> str:
    """Return *text* as one printable line, as a subject must be."""
    return " ".join(printable(text).split())


def printable(text: str) -> str:
    """Return *text* with a space for each character that cannot be printed."""
    if text.isascii() and text.isprintable():
        return text
    return re.sub(_UNPRINTABLE, " ", text)


def _shortened(line: str) -> str:
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def count_attempts(number: int) -> str:
    return f"{number} failed {'attempt' if number == 1 else 'attempts'}"


def count_steps(number: int) -> str:
    """Format a number of steps: `1 step`, `2 steps`."""
    return f"{number} {'step' if number == 1 else 'steps'}"


def describe_files(files: Mapping[str, Any] | None) -> str:
    """Return how many files and lines a step changed: ``4 files +12 -180``; "" for no file."""
    if files is None:
        return ""
    if "changed" not in files:
        return "changed files"
    number = "1 file" if files["changed"] == 1 else f"{files['changed']} files"
    return f"{number} +{files['added']} -{files['removed']}"
