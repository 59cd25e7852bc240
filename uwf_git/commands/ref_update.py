"""Ref updates: the lines that git passes to receive hooks, and which of the refs are uwf's.

Imports no store: a push of branches alone costs next to nothing.
Source: githooks(5), "pre-receive" and "post-receive".
"""

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from uwf_git.errors import BadUsage
from uwf_git.model.names import Oid
from uwf_git.model.workflow_name import fold_workflow_name

MOST_INPUT_BYTES = 64 * 1024 * 1024
"""The most that is read: about half a million refs."""

_LINE = re.compile(rb"([0-9a-f]{40}) ([0-9a-f]{40}) (refs/[^\0\n]+)")
_NOTHING = b"0" * 40
_SHA256_LINE = re.compile(rb"[0-9a-f]{64} [0-9a-f]{64} ")
_OURS = ("refs/threads", "refs/archive", "refs/workflows", "refs/claims", "refs/cas", "refs/uwf")


def bad_hook_input(problem: str) -> BadUsage:
    """Tell that standard input is not in the format of a git receive hook."""
    return BadUsage(
        f"standard input is not that of a git receive hook: {problem}",
        code="bad-hook-input",
        hint="git runs this; by hand: echo OLD NEW REF | uwf hook pre-receive",
    )


class RefUpdate(NamedTuple):
    name: str
    old: Oid | None
    """The value that the pusher saw; None if the ref is new."""

    new: Oid | None
    """None deletes the ref."""


class Refusal(NamedTuple):
    """Why a ref may not be changed as the push wants."""

    name: str
    message: str
    hint: str


def parse_updates(content: bytes) -> list[RefUpdate]:
    """Read the lines ``<old> <new> <ref>`` that git gives to a receive hook."""
    if len(content) > MOST_INPUT_BYTES:
        raise bad_hook_input("too many refs in one push")
    if content and not content.endswith(b"\n"):
        raise bad_hook_input("its last line has no newline")
    updates = [_parse_line(line) for line in content.split(b"\n")[:-1]]
    if len({update.name for update in updates}) < len(updates):
        raise bad_hook_input("it has one ref twice")
    return updates


def _parse_line(line: bytes) -> RefUpdate:
    match = _LINE.fullmatch(line)
    if match is None:
        if _SHA256_LINE.match(line):
            raise bad_hook_input("it has SHA-256 object ids, which uwf cannot read yet")
        raise bad_hook_input(f"it has the line {line[:100].decode(errors='replace')!r}")
    old, new, name = match.groups()
    return RefUpdate(os.fsdecode(name), _oid(old), _oid(new))


def _oid(digits: bytes) -> Oid | None:
    return None if digits == _NOTHING else Oid(digits.decode())


def is_ours(name: str) -> bool:
    """Check whether *name* lies in a folder of uwf, ignoring case as some file systems do."""
    folded = fold_workflow_name(name)
    return any(folded == ours or folded.startswith(ours + "/") for ours in _OURS)


def ours_among(updates: Sequence[RefUpdate]) -> list[RefUpdate]:
    return [update for update in updates if is_ours(update.name)]
