"""Ref updates: what a push asks for, as git tells its hooks.

Owns: the lines that hooks read, and which refs are ours to look at.
Knows nothing of: what is allowed. It imports no store: a push of branches costs next to nothing.
Source: githooks(5), "pre-receive" and "post-receive".
"""

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from uwf_git.errors import BadUsage
from uwf_git.model.workflow_name import fold_workflow_name
from uwf_git.store.refs import Oid

MOST_INPUT_BYTES = 64 * 1024 * 1024
"""How much is read: about half a million refs."""

_LINE = re.compile(rb"([0-9a-f]{40}) ([0-9a-f]{40}) (refs/[^\0\n]+)")
_NOTHING = b"0" * 40
_SHA256_LINE = re.compile(rb"[0-9a-f]{64} [0-9a-f]{64} ")
_OURS = ("refs/threads", "refs/archive", "refs/workflows", "refs/cas", "refs/uwf")


class BadHookInput(BadUsage):
    """What stands on standard input is not what git tells a hook."""

    code = "bad-hook-input"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"standard input is not what git tells a receive hook: {problem}",
            hint="git runs this; by hand: echo OLD NEW REF | uwf hook pre-receive",
        )


class RefUpdate(NamedTuple):
    """One ref that a push would change."""

    name: str
    old: Oid | None
    """What the pusher believes to be there; None if the ref is to be new."""

    new: Oid | None
    """None if it is to be deleted."""


class Refusal(NamedTuple):
    """Why one ref may not be changed so."""

    name: str
    message: str
    hint: str


def parse_updates(content: bytes) -> list[RefUpdate]:
    """Read the lines ``<old> <new> <ref>`` that git gives to a receive hook.

    Raises:
        BadHookInput: there is too much, a line is something else, or a ref comes twice.
    """
    if len(content) > MOST_INPUT_BYTES:
        raise BadHookInput("too many refs in one push")
    if content and not content.endswith(b"\n"):
        raise BadHookInput("its last line has no end")
    updates = [_parse_line(line) for line in content.split(b"\n")[:-1]]
    if len({update.name for update in updates}) < len(updates):
        raise BadHookInput("it has one ref twice")
    return updates


def _parse_line(line: bytes) -> RefUpdate:
    match = _LINE.fullmatch(line)
    if match is None:
        if _SHA256_LINE.match(line):
            raise BadHookInput("it has SHA-256 object ids, which uwf cannot read yet")
        raise BadHookInput(f"it has the line {line[:100].decode(errors='replace')!r}")
    old, new, name = match.groups()
    return RefUpdate(os.fsdecode(name), _oid(old), _oid(new))


def _oid(digits: bytes) -> Oid | None:
    return None if digits == _NOTHING else Oid(digits.decode())


def is_ours(name: str) -> bool:
    """Tell whether the ref *name* lies where we keep something, in whatever case it is written.

    On a file system that ignores case, refs/Threads/x is a file in refs/threads.
    """
    folded = fold_workflow_name(name)
    return any(folded == ours or folded.startswith(ours + "/") for ours in _OURS)


def ours_among(updates: Sequence[RefUpdate]) -> list[RefUpdate]:
    """Give the updates of refs that are ours to look at."""
    return [update for update in updates if is_ours(update.name)]
