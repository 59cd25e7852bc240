"""Commits: write and read git's commit objects, and find a file in a commit's tree.

A commit is never dated before its parents. Dates are UTC, so the same thread has the same object
ids on every machine.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dulwich.objects import Commit, ObjectID, ShaFile, Tree

from uwf_git.errors import GIVEN_BACK, Refused, StoreDamaged
from uwf_git.store.objects.objects import ObjectStore, get_blob, get_tree
from uwf_git.store.oid import Oid

# The headers in git's order (fsck_commit in git's fsck.c), then a blank line. A walk along a thread
# parses each of its commits; dulwich's parser takes six times as long.
_HEADERS = re.compile(
    rb"tree ([0-9a-f]{40})\n"
    rb"((?:parent [0-9a-f]{40}\n)*)"
    rb"author ([^\n]*>) [0-9]{1,19} [+-][0-9]{4}\n"
    rb"committer [^\n]*> ([0-9]{1,19}) [+-][0-9]{4}\n"
    rb"(?:[^ \n]* [^\n]*\n)*"
    rb"\n"
)


# git's commit-graph, which `git gc` writes, has 34 bits for a date (the year 2514): for a later one
# `git fsck` reports a mismatch ever after.
END_OF_TIME_S = 1 << 34


def check_clock(now_ms: int) -> None:
    """Check before anything is done that a commit could have the date *now_ms*."""
    if now_ms // 1000 >= END_OF_TIME_S:
        raise Refused(
            f"the clock of this machine is {now_ms // 1000} seconds after 1970, which is after the "
            "year 2514: git cannot hold the date",
            code="clock-too-late",
            hint="set the clock (`date` shows it), and type the command again: nothing was changed",
            now=now_ms,
        )


def damaged_commit(oid: Oid, problem: str) -> StoreDamaged:
    return StoreDamaged(
        f"commit {oid} {problem}", code="damaged-commit", hint=GIVEN_BACK, commit=oid
    )


class Signing(NamedTuple):
    """Author, committer, time and signature of a commit."""

    author: bytes
    """``name <email>``, cleaned (store/git/identity.py)."""

    committer: bytes
    now_ms: int

    sign: Callable[[bytes], bytes] | None = None
    """Signs a commit's bytes (store/signatures/sign.py); None leaves it unsigned."""


class CommitView(NamedTuple):
    oid: Oid
    parents: tuple[Oid, ...]
    tree: ObjectID
    message: bytes
    author: bytes
    time_s: int
    """The date of the committer, in seconds since 1970."""


class CommitDraft(NamedTuple):
    tree: Tree
    parents: tuple[CommitView, ...]
    message: bytes
    objects: Sequence[ShaFile]
    """The objects of the tree that may not be stored yet."""


def read_commit(objects: ObjectStore, oid: Oid) -> CommitView:
    found = _HEADERS.match(read_raw_commit(objects, oid))
    if found is None:
        raise damaged_commit(oid, "is no commit that git would write")
    return build_view(oid, found)


def build_view(oid: Oid, headers: re.Match[bytes]) -> CommitView:
    """Return the commit *oid* whose *headers* (tree, parents, author, time) were matched."""
    return CommitView(
        oid=oid,
        parents=tuple(Oid(parent) for parent in headers[2].decode().split()[1::2]),
        tree=ObjectID(headers[1]),
        message=headers.string[headers.end() :],
        author=headers[3],
        time_s=int(headers[4]),
    )


def read_raw_commit(objects: ObjectStore, oid: Oid) -> bytes:
    try:
        kind, content = objects.get_raw(ObjectID(oid.encode()))
    except KeyError:
        raise damaged_commit(oid, "is missing") from None
    if kind != Commit.type_num:
        raise damaged_commit(oid, "is not a commit")
    return content


def find_entry(objects: ObjectStore, commit: CommitView, name: str) -> ObjectID | None:
    tree = get_tree(objects, commit.tree)
    key = name.encode()
    return tree[key][1] if key in tree else None


def read_commit_file(objects: ObjectStore, commit: CommitView, name: str) -> bytes:
    oid = find_entry(objects, commit, name)
    if oid is None:
        raise damaged_commit(commit.oid, f"has no {name}")
    return get_blob(objects, oid)


def write_commit(objects: ObjectStore, draft: CommitDraft, signing: Signing) -> Oid:
    """Write a commit after the objects that it needs; until a ref points there git may prune it."""
    commit = build_commit(draft, signing)
    # Two nodes in one folder list that folder twice; write each object once.
    needed = {obj.id: obj for obj in (*draft.objects, draft.tree, commit)}
    objects.add_objects([(obj, None) for obj in needed.values()])
    return Oid(commit.id.decode())


def build_commit(draft: CommitDraft, signing: Signing) -> Commit:
    """Build the commit of *draft*; nothing is written."""
    check_clock(signing.now_ms)
    commit = Commit()
    commit.tree = draft.tree.id
    commit.parents = [ObjectID(parent.oid.encode()) for parent in draft.parents]
    commit.author = signing.author
    commit.committer = signing.committer
    time_s = max([0, signing.now_ms // 1000, *(parent.time_s for parent in draft.parents)])
    commit.author_time = commit.commit_time = time_s
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = draft.message
    if signing.sign is not None:
        commit.gpgsig = signing.sign(commit.as_raw_string()).rstrip(b"\n")
    return commit
