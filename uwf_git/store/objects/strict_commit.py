"""Strict commits: the rules of git and of FORMAT.md that reading a commit does not need.

A commit without a problem passes `git fsck --strict` and git's `transfer.fsckObjects`, and every
reader finds the same trailers in it (FACTS 3 has messages in which they differ).
Source: fsck_commit and fsck_ident in git's fsck.c.
"""

import re
from typing import NamedTuple

from uwf_git.store.objects.commit import (
    END_OF_TIME_S,
    CommitView,
    build_view,
    read_commit,
    read_raw_commit,
)
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.oid import Oid

# A longer date overflows in git when it adds the time zone. An empty name with a space passes.
_IDENTITY = rb"(?!<)[^<>\n\0]* <[^<>\n\0]*> (?:0|[1-9][0-9]{0,17}) [+-][0-9]{4}"
# What may follow the committer: one signature, as `git commit -S` writes it. Readers differ in what
# they make of other headers there; of a second "parent" or a second signature, for two.
_SIGNATURE = re.compile(rb"(?:gpgsig [^\n]*\n(?: [^\n]*\n)*)?")
_STRICT = re.compile(
    rb"tree ([0-9a-f]{40})\n"
    rb"((?:parent [0-9a-f]{40}\n)*)"
    rb"author (?=([^\n]*>))" + _IDENTITY + rb"\n"
    rb"committer (?=[^\n]*> ([0-9]+))" + _IDENTITY + rb"\n"
    rb"(?:[^\n\0]+\n)*"
    rb"\n"
)
# git decodes the message by this header, and may find other trailers than we do; we read UTF-8.
_ENCODING = re.compile(rb"^encoding[ \n]", re.MULTILINE)
_NAMES = re.compile(rb"\n(author|committer) ([^\n]*)")
# A subject, a body whose every line is indented, and the trailers.
_MESSAGE = re.compile(
    rb"[^\n\0]+\n\n(?:(?: {4}[^\n\0]+)?\n)*(?:Uwf-[A-Z][A-Za-z-]*: [\x21-\x7e]+\n)+"
)


class Person(NamedTuple):
    identity: bytes
    """``name <email>``."""

    date: bytes
    """Seconds since 1970, and the time zone."""


class StrictCommit(NamedTuple):
    """A commit, checked by the rules of git and of FORMAT.md."""

    view: CommitView
    problem: str | None
    """A violation that `read_commit` accepts; None if there is none."""

    author: Person
    committer: Person
    is_signed: bool
    """It has a signature, good or bad."""


def read_strict_commit(objects: ObjectStore, oid: Oid) -> StrictCommit:
    content = read_raw_commit(objects, oid)
    found = _STRICT.match(content)
    if found is None:
        # read_commit raises if it is no commit at all; else it only breaks one of git's rules.
        view = read_commit(objects, oid)
        problem = _header_problem(content[: -len(view.message)] if view.message else content)
    else:
        problem = None
        view = build_view(oid, found)
    header = content[: len(content) - len(view.message)]
    if problem is None:
        problem = _find_odd_header(header)
    if problem is None and view.time_s >= END_OF_TIME_S:
        problem = f"has the date {view.time_s}, which git's commit-graph cannot hold"
    if problem is None and not _is_utf8(view.message):
        problem = "has a message that is not UTF-8"
    if problem is None and _MESSAGE.fullmatch(view.message) is None:
        problem = "has a line between subject and trailers that git may read as something else"
    author, committer = (_person(line) for _who, line in _NAMES.findall(header)[:2])
    return StrictCommit(view, problem, author, committer, is_signed=b"\ngpgsig" in header)


def _find_odd_header(header: bytes) -> str | None:
    """Return which header of a commit, its last blank line included, uwf never writes."""
    if _ENCODING.search(header):
        return "declares another encoding than UTF-8"
    more = header.partition(b"\ncommitter ")[2].partition(b"\n")[2][:-1]
    odd = _SIGNATURE.sub(b"", more, count=1)
    if odd:
        name = odd.partition(b"\n")[0][:40].decode(errors="replace")
        return f"has a header that uwf never writes: {name!r}"
    zones = [line.rpartition(b" ")[2] for _who, line in _NAMES.findall(header)]
    return None if set(zones) == {b"+0000"} else "has a date that is not in UTC (+0000)"


def _is_utf8(message: bytes) -> bool:
    try:
        message.decode()
    except UnicodeDecodeError:
        return False
    return True


def _person(line: bytes) -> Person:
    identity, bracket, date = line.rpartition(b">")
    return Person(identity + bracket, date.strip())


def _header_problem(headers: bytes) -> str:
    for who, identity in _NAMES.findall(headers):
        if re.fullmatch(_IDENTITY, identity) is None:
            shown = identity.decode(errors="replace")[:80]
            return f"has an identity that git refuses as {who.decode()}: {shown!r}"
    return "is no commit that git would write"
