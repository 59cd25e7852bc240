"""Strict commits: what git accepts of a commit, and what uwf writes.

Owns: the rules of identities, and of the lines between subject and trailers.
Knows nothing of: what a message says.
Always true: a commit without a problem passes `git fsck --strict` and git's `transfer.fsckObjects`,
and every reader finds the same trailers in it (FACTS 3 has the messages in which they do not).
Source: fsck_commit and fsck_ident in git's fsck.c.
"""

import re
from typing import NamedTuple

from uwf_git.store.commit import CommitView, build_view, read_commit, read_raw_commit
from uwf_git.store.objects import ObjectStore
from uwf_git.store.refs import Oid

# The longest date is what git can still add a time zone to; an empty name with a space passes.
_IDENTITY = rb"(?!<)[^<>\n\0]* <[^<>\n\0]*> (?:0|[1-9][0-9]{0,17}) [+-][0-9]{4}"
_STRICT = re.compile(
    rb"tree ([0-9a-f]{40})\n"
    rb"((?:parent [0-9a-f]{40}\n)*)"
    rb"author (?=([^\n]*>))" + _IDENTITY + rb"\n"
    rb"committer (?=[^\n]*> ([0-9]+))" + _IDENTITY + rb"\n"
    rb"(?:[^\n\0]+\n)*"
    rb"\n"
)
# git reads the message in that encoding, and may find other trailers in it, or none; we read UTF-8.
_ENCODING = re.compile(rb"^encoding[ \n]", re.MULTILINE)
# git's commit-graph, which `git gc` writes, has 34 bits for a date: of a later one (the year 2514)
# `git fsck` says ever after that the two differ.
_END_OF_TIME_S = 1 << 34
_NAMES = re.compile(rb"\n(author|committer) ([^\n]*)")
# A subject, a body whose every line is indented, and the trailers.
_MESSAGE = re.compile(
    rb"[^\n\0]+\n\n(?:(?: {4}[^\n\0]+)?\n)*(?:Uwf-[A-Z][A-Za-z-]*: [\x21-\x7e]+\n)+"
)


class StrictCommit(NamedTuple):
    """A commit, held against git's rules and FORMAT.md's."""

    view: CommitView
    problem: str | None
    """What is wrong that read_commit does not mind; None if nothing is."""


def read_strict_commit(objects: ObjectStore, oid: Oid) -> StrictCommit:
    """Give the commit *oid* with what git or FORMAT.md would not have in it.

    Raises:
        DamagedCommit: it is missing, or no commit.
    """
    content = read_raw_commit(objects, oid)
    found = _STRICT.match(content)
    if found is None:
        # Either it is none at all, and that is raised, or git has a rule that our reader has not.
        view = read_commit(objects, oid)
        problem = _header_problem(content[: -len(view.message)] if view.message else content)
    else:
        problem = None
        view = build_view(oid, found)
    if problem is None and _ENCODING.search(content, 0, len(content) - len(view.message)):
        problem = "says that its message is in another encoding than UTF-8"
    if problem is None and view.time_s >= _END_OF_TIME_S:
        problem = f"has the date {view.time_s}, which git's commit-graph cannot hold"
    if problem is None and _MESSAGE.fullmatch(view.message) is None:
        problem = "has a line between subject and trailers that git may read as something else"
    return StrictCommit(view, problem)


def _header_problem(headers: bytes) -> str:
    for who, identity in _NAMES.findall(headers):
        if re.fullmatch(_IDENTITY, identity) is None:
            shown = identity.decode(errors="replace")[:80]
            return f"has an identity that git refuses as {who.decode()}: {shown!r}"
    return "is no commit that git would write"
