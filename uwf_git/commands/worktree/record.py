"""What this machine knows of the worktrees of branches: a file each, below the git directory.

`<git dir>/uwf-worktrees/<thread>/<branch>`, and `origin` beside them: where the branches of the
thread begin. They outlive the worktrees, since they tell where the work of a branch is.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.model.names import ThreadId, is_thread_id
from uwf_git.store.durable import join_below, list_names, read_local, remove_file, replace_file
from uwf_git.store.locks import parse_object
from uwf_git.store.store import Store
from uwf_git.store.threads.history import Snapshot
from uwf_git.store.threads.local_files import STAYS, WORKTREES, note_once, remove_folder, take_notes

_ORIGIN = "origin"

LEFT_OUT = "    left out: "
"""How a line of a commit begins that names a file which it has not."""


class Inner(NamedTuple):
    path: str
    """Below the worktree."""

    ref: str
    commit: str
    repository: str


class Worktree(NamedTuple):
    thread: ThreadId
    parent: ThreadId
    source: str
    """The work directory from which it was made."""

    repository: str
    base: str

    path: str
    workdir: str
    """Where in it the agents run."""

    git_dir: str = ""
    """Its own git directory; empty until it is whole."""

    commit: str | None = None
    """The work of the branch, once it was committed."""

    is_removed: bool = False
    inner: tuple[Inner, ...] = ()
    """What is kept of repositories inside it, once it was committed."""

    left_out: tuple[str, ...] = ()
    """The secrets in it, which are in no commit, and why."""


class SplitOrigin(NamedTuple):
    at: str
    source: str
    repository: str
    """Its git directory, the common one."""

    prefix: str
    """Where in the repository the source lies; empty at the top."""

    commit: str


def write_worktree(store: Store, worktree: Worktree) -> None:
    fields = worktree._asdict()
    if not worktree.left_out:
        # Older versions of uwf do not know it.
        del fields["left_out"]
    _write(_path(store, worktree.parent, worktree.thread), fields)


def find_worktree(store: Store, parent: ThreadId, thread: ThreadId) -> Worktree | None:
    found = _read(_path(store, parent, thread))
    # What has other fields is no record of ours.
    with suppress(TypeError):
        inner = tuple(Inner(*each) for each in found.pop("inner", ()))
        left_out = tuple(found.pop("left_out", ()))
        worktree = Worktree(**found, inner=inner, left_out=left_out)
        # Who can write below the store could name any folder or lock, and it would be removed.
        is_ours = worktree[:2] == (thread, parent) and worktree.path == place_of(store, thread)
        kept = "" if worktree.commit is None else worktree.commit
        texts = (*worktree[:8], kept, *left_out, *(text for each in inner for text in each))
        if is_ours and {*map(type, texts)} == {str}:
            return worktree
    return None


def find_own_worktree(store: Store, owner: Snapshot) -> Worktree | None:
    """Return what is recorded of the worktree of *owner*, a branch that works apart."""
    return find_worktree(store, find_parent(owner), owner.record.thread)


def find_parent(owner: Snapshot) -> ThreadId:
    """Return the thread of which *owner*, which works apart, is a branch."""
    parent = owner.get_trunk()
    if parent is None:
        raise ValueError("the thread does not work apart")  # a bug of the caller
    return parent


def place_of(store: Store, thread: ThreadId) -> str | None:
    """Return where the worktree of a branch is; None if the user has no home directory.

    Not below the store, which may be the user's repository, and whose local files may be deleted.
    """
    folder = store.user_path("worktrees")
    return None if folder is None else os.path.join(os.path.realpath(folder), thread)


def describe_work(worktree: Worktree) -> str:
    told = "".join(f"{each.path}: {each.ref} of {each.repository}\n" for each in worktree.inner)
    told += "".join(f"{LEFT_OUT}{each}\n" for each in worktree.left_out)
    title = f"work of branch {worktree.thread}\n\n"
    trailers = f"Uwf-Thread: {worktree.thread}\nUwf-Parent-Thread: {worktree.parent}\n"
    return title + (told and told + "\n") + trailers


def list_worktrees(store: Store, parent: ThreadId) -> list[Worktree]:
    """List the worktrees that branches of *parent* have here, or had."""
    names = sorted(filter(is_thread_id, list_names(_path(store, parent))))
    found = (find_worktree(store, parent, ThreadId(name)) for name in names)
    return [each for each in found if each is not None]


def list_parents(store: Store) -> Iterator[ThreadId]:
    """Yield the threads whose branches have worktrees here, or had."""
    folder = _path(store)
    names = filter(is_thread_id, list_names(folder))
    return (ThreadId(name) for name in names if not os.path.islink(os.path.join(folder, name)))


def write_origin(store: Store, parent: ThreadId, origin: SplitOrigin) -> None:
    _write(_path(store, parent, _ORIGIN), origin._asdict())


def find_split_origin(store: Store, parent: ThreadId, at: str | None = None) -> SplitOrigin | None:
    """Return where the branches of *parent* at *at*, or its newest split, begin."""
    with suppress(TypeError):
        origin = SplitOrigin(**_read(_path(store, parent, _ORIGIN)))
        if {*map(type, origin)} == {str} and at in {None, origin.at}:
            return origin
    return None


def forget_worktree(store: Store, parent: ThreadId, thread: ThreadId) -> None:
    remove_file(_path(store, parent, thread))


def forget_worktrees(store: Store, parent: ThreadId) -> None:
    """Remove what is recorded of the branches of *parent*, if all their worktrees are gone."""
    if all(each.is_removed for each in list_worktrees(store, parent)):
        remove_folder(_path(store, parent))


def note_that_stays(store: Store, worktree: Worktree, reason: str) -> None:
    """Note why a worktree stays, unless that is known."""
    note_once(store, STAYS, worktree.thread, _spell({"path": worktree.path, "reason": reason}))


def take_those_that_stay(store: Store) -> list[tuple[ThreadId, str, str]]:
    """Return the branches whose worktrees stay, their paths, and why; each of them once."""
    told = {thread: parse_object(content) for thread, content in take_notes(store, STAYS).items()}
    return [(each, str(note.get("path")), str(note.get("reason"))) for each, note in told.items()]


def _path(store: Store, *parts: str) -> str:
    return join_below(store.path, WORKTREES, *parts)


def _write(path: str, document: dict[str, Any]) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    replace_file(path, _spell(document))


def _spell(document: dict[str, Any]) -> bytes:
    # Paths may hold any byte; as escapes they come back.
    return json.dumps(document).encode() + b"\n"


def _read(path: str) -> dict[str, Any]:
    return parse_object(read_local(path))
