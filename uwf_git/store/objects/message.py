"""Commit messages: subject, indented body and trailers, written and read back.

No text of an agent or a person can be read as a trailer, by git's parser or by ours: without these
rules four kinds of forgery worked, with them none of 4,000 fuzzed messages (FACTS 3).
Never dulwich.trailers: it disagrees with git.
Format: FORMAT.md, "Messages".
"""

import re
from collections.abc import Sequence
from urllib.parse import quote, unquote

from uwf_git.errors import StoreDamaged
from uwf_git.model.event_words import one_line, printable
from uwf_git.model.thread import FORMAT

_HINT = "see it with `git log`; another copy of this store may have it whole: `git fetch`"
LONGEST_SUBJECT = 200

_LAST_OF_FORMAT_1 = "90d8292"
_TRAILER = re.compile(r"(Uwf-[A-Z][A-Za-z-]*): ([\x21-\x7e]+)")
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_SAFE = "/:@!$&'()*+,;=[]{}|^~<>?#\"\\`"
"""What is not percent-encoded in a trailer's value, besides letters, digits, _ . and -."""


class BadMessage(StoreDamaged):
    code = "bad-message"

    def __init__(
        self, problem: str, *, hint: str = _HINT, commit: str | None = None, **facts: str
    ) -> None:
        self.problem = problem
        super().__init__(
            f"the message of {f'commit {commit}' if commit else 'a commit'} {problem}",
            hint=hint,
            **{**facts, "commit": commit},
        )

    def of_commit(self, commit: str) -> "BadMessage":
        return BadMessage(self.problem, hint=self.hint or _HINT, **{**self.facts, "commit": commit})


class OldFormat(BadMessage):
    """The commit has a format that was never released, which this uwf does not read."""

    def __init__(self, version: str) -> None:
        super().__init__(
            f"has format {version}, and this uwf reads format {FORMAT} alone: commit "
            f"{_LAST_OF_FORMAT_1} of this project reads format 1",
            hint="nothing is lost, and all else in the store goes on; `git update-ref -d REF` "
            "removes what nobody needs",
            format=version,
        )


def build_message(
    who: str, said: str, *, body: str = "", trailers: Sequence[tuple[str, str]]
) -> bytes:
    """Return the message of a commit: ``<who>: <said>``, the *body* indented, the *trailers*.

    All texts may hold any characters. An empty *who* becomes ``uwf``: git finds no trailers under
    an empty subject.
    """
    lines = [build_subject(who, said), ""]
    text = build_body(body)
    if text:
        lines += [text, ""]
    lines += [f"{name}: {quote(value, safe=_SAFE, errors='replace')}" for name, value in trailers]
    return ("\n".join(lines) + "\n").encode(errors="replace")


def build_subject(who: str, said: str) -> str:
    return f"{one_line(who) or 'uwf'}: {one_line(said)}"[:LONGEST_SUBJECT].rstrip()


def build_body(text: str) -> str:
    """Return *text* as a body: every line indented, since git finds trailers at column 0."""
    lines = [printable(line).rstrip() for line in _LINE_ENDS.split(text)]
    return "\n".join("    " + line if line else "" for line in lines).strip("\n")


def parse_trailers(message: bytes) -> dict[str, str]:
    """Read the trailers of a commit's message: its last paragraph, strictly."""
    _head, blank, last = message.decode(errors="replace").rpartition("\n\n")
    if not blank or not last.endswith("\n"):
        raise BadMessage("has no trailers")
    trailers: dict[str, str] = {}
    for line in last[:-1].split("\n"):
        match = _TRAILER.fullmatch(line)
        if match is None:
            raise BadMessage(f"has a line among its trailers that is no trailer: {line[:60]!r}")
        if match[1] in trailers:
            raise BadMessage(f"says {match[1]} twice")
        value = match[2]
        trailers[match[1]] = unquote(value) if "%" in value else value
    _check_format(trailers.get("Uwf-Format"))
    return trailers


def _check_format(version: str | None) -> None:
    # At most nine digits: int() of 5,000 digits raises.
    if version is None or re.fullmatch("[0-9]{1,9}", version) is None:
        raise BadMessage(f"has no number in Uwf-Format: {str(version or '')[:40]!r}")
    if int(version) > FORMAT:
        raise BadMessage(
            f"has format {version}, newer than the {FORMAT} that this uwf reads",
            hint="a newer uwf wrote it: upgrade this one",
            format=version,
        )
    if int(version) < FORMAT:
        raise OldFormat(version)


def subject_of(message: bytes) -> str:
    return message.partition(b"\n")[0].decode(errors="replace")


def body_of(message: bytes) -> str:
    """Return the body of a commit's message without its indentation; "" if it has none."""
    return "\n".join(line.removeprefix("    ") for line in raw_body_of(message).split("\n"))


def raw_body_of(message: bytes) -> str:
    return "\n\n".join(message.decode(errors="replace").split("\n\n")[1:-1])
