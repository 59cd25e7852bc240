"""Commits: git's commit objects as we write and read them.

Owns: author, committer, dates, parents; finding a file in a commit's tree.
Knows nothing of: what a message or a file means.
Always true: a commit's date is never before its parents'; dates are UTC, so that the same
thread has the same object ids on every machine.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from dulwich.errors import FileFormatException
from dulwich.objects import Commit, ObjectID, ShaFile, Tree

from uwf_git.errors import StoreDamaged
from uwf_git.store.node_blob import decode_json
from uwf_git.store.node_tree import get_blob, get_tree
from uwf_git.store.objects import ObjectStore
from uwf_git.store.refs import Oid, is_oid


class DamagedCommit(StoreDamaged):
    """A commit of ours is missing, or does not hold what it must."""

    code = "damaged-commit"

    def __init__(self, oid: Oid, problem: str) -> None:
        super().__init__(
            f"commit {oid} {problem}",
            hint="see `git fsck`; another copy of this store can give it back: `git fetch`",
            commit=oid,
        )


class Signing(NamedTuple):
    """Who makes a commit, on whose behalf, and when."""

    author: bytes
    """``name <email>``, cleaned (identity.py)."""

    committer: bytes
    now_ms: int
    """Milliseconds since 1970."""


class CommitView(NamedTuple):
    """A commit as read."""

    oid: Oid
    parents: tuple[Oid, ...]
    tree: ObjectID
    message: bytes
    author: bytes
    time_s: int
    """The committer's date, in seconds since 1970."""


class CommitDraft(NamedTuple):
    """A commit to be written."""

    tree: Tree
    parents: tuple[CommitView, ...]
    message: bytes
    objects: Sequence[ShaFile]
    """What the tree needs and may not be there yet."""


def read_commit(objects: ObjectStore, oid: Oid) -> CommitView:
    """Give the commit *oid*.

    Raises:
        DamagedCommit: it is missing, or no commit.
    """
    try:
        commit = objects[ObjectID(oid.encode())]
    except KeyError:
        raise DamagedCommit(oid, "is missing") from None
    if not isinstance(commit, Commit):
        raise DamagedCommit(oid, "is not a commit")
    try:
        return _view(oid, commit)
    # dulwich parses at the first question, and answers None for what is not there.
    except (AttributeError, FileFormatException, IndexError, TypeError, ValueError) as error:
        raise DamagedCommit(oid, "is no commit that git would write") from error


def _view(oid: Oid, commit: Commit) -> CommitView:
    view = CommitView(
        oid=oid,
        parents=tuple(Oid(parent.decode()) for parent in commit.parents),
        tree=commit.tree,
        message=bytes(commit.message),
        author=bytes(commit.author),
        time_s=int(commit.commit_time),
    )
    if not all(is_oid(each) for each in (view.tree.decode(), *view.parents)):
        raise ValueError("something else than an object id")
    return view


def find_entry(objects: ObjectStore, commit: CommitView, name: str) -> ObjectID | None:
    """Give the object that the commit's tree has under *name*, or None."""
    tree = get_tree(objects, commit.tree)
    key = name.encode()
    return tree[key][1] if key in tree else None


def read_file(objects: ObjectStore, commit: CommitView, name: str) -> bytes:
    """Give the content of the file *name* at the top of the commit's tree.

    Raises:
        DamagedCommit: there is no such file.
    """
    oid = find_entry(objects, commit, name)
    if oid is None:
        raise DamagedCommit(commit.oid, f"has no {name}")
    return get_blob(objects, oid)


def read_json_file(objects: ObjectStore, commit: CommitView, name: str) -> Any:
    """Give the JSON document in the file *name* at the top of the commit's tree.

    Raises:
        DamagedCommit: there is no such file, or it is not JSON.
    """
    try:
        return decode_json(read_file(objects, commit, name))
    except ValueError as error:
        raise DamagedCommit(commit.oid, f"has a {name} that is not JSON: {error}") from error


def write_commit(objects: ObjectStore, draft: CommitDraft, signing: Signing) -> Oid:
    """Write a commit after everything it needs; no ref moves.

    Returns:
        Its object id. Until a ref points at it, nothing has happened, and git may sweep it.

    Raises:
        OSError: the machine would not let it be written.
    """
    commit = Commit()
    commit.tree = draft.tree.id
    commit.parents = [ObjectID(parent.oid.encode()) for parent in draft.parents]
    commit.author = signing.author
    commit.committer = signing.committer
    time_s = max([signing.now_ms // 1000, *(parent.time_s for parent in draft.parents)])
    commit.author_time = commit.commit_time = time_s
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = draft.message
    # Two nodes in one folder give that folder twice; each object is written once.
    needed = {obj.id: obj for obj in (*draft.objects, draft.tree, commit)}
    objects.add_objects([(obj, None) for obj in needed.values()])
    return Oid(commit.id.decode())
