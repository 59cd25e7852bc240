"""Make the worktree of a branch, at the commit at which all branches of its split begin."""

import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from uwf_git.commands.split.commits import name_work
from uwf_git.commands.split.family import find_isolation
from uwf_git.commands.worktree.record import (
    SplitOrigin,
    Worktree,
    find_split_origin,
    find_worktree,
    place_of,
    write_origin,
    write_worktree,
)
from uwf_git.commands.worktree.repository import find_origin, git_of
from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.store.disk.durable import replace_file
from uwf_git.store.disk.file_lock import hold_lock
from uwf_git.store.git.fenced import share_sparseness
from uwf_git.store.store import Store
from uwf_git.store.threads.history import find_settings
from uwf_git.store.threads.local_files import set_workdir
from uwf_git.store.threads.snapshot import Snapshot


def worktree_gone(worktree: Worktree) -> Refused:
    """Say that somebody removed the worktree of a branch that has not ended."""
    thread, source = worktree.thread, shlex.quote(worktree.source)
    return Refused(
        f"the worktree of branch {thread} was removed: there is no {worktree.workdir}",
        code="worktree-gone",
        hint=f"what was not committed in it is lost; `uwf thread step {thread} --workdir "
        f"{source}` makes it again, with what was committed",
        thread=thread,
        path=worktree.workdir,
    )


class _Branch(NamedTuple):
    """A branch that works apart."""

    thread: ThreadId
    parent: ThreadId
    at: str


def note_origin(
    store: Store, environ: Mapping[str, str], thread: ThreadId, *, at: str, source: str
) -> SplitOrigin:
    """Record the commit of *source* as that of all branches that *thread* has at *at*.

    Raises:
        Refused, ProgramFailed: there can be no worktrees of it.
    """
    kept = find_settings(store, thread)
    origin = SplitOrigin(at, source, *find_origin(environ, source, kept=kept))
    write_origin(store, thread, origin)
    return origin


def find_own_worktree(store: Store, owner: Snapshot) -> Worktree | None:
    """Return what is recorded of the worktree of *owner*, a branch that works apart."""
    branch = _name(owner)
    return find_worktree(store, branch.parent, branch.thread)


def make_worktree(
    store: Store, environ: Mapping[str, str], owner: Snapshot, *, source: str
) -> Worktree:
    """Make the worktree of *owner* from the work directory *source*, unless it is there.

    What an older one had committed is in it again.

    Raises:
        Refused: there can be none of *source*.
        Refused: the user has no home directory.
        ProgramFailed: git is missing, or failed.
    """
    branch = _name(owner)
    with lock_worktrees(store):
        found = find_worktree(store, branch.parent, branch.thread)
        if found is not None and found.git_dir and os.path.isdir(found.workdir):
            return found
        begun = found
        if begun is None or not begun.git_dir or begun.source != source:
            begun = _plan(store, environ, branch, source)
        write_worktree(store, begun._replace(git_dir=""))
        made = begun._replace(git_dir=_add(store, environ, begun), is_removed=False)
        os.makedirs(made.workdir, exist_ok=True)
        write_worktree(store, made)
        set_workdir(store, made.thread, made.workdir)
        return made


@contextmanager
def lock_worktrees(store: Store) -> Iterator[None]:
    """Be the only one that makes or removes worktrees of this store."""
    with hold_lock(store.local_path("locks", "worktrees"), wait=True):
        yield


def _name(owner: Snapshot) -> _Branch:
    parent, at = owner.get_trunk(), find_isolation(owner)
    if parent is None or at is None:
        raise ValueError("the thread does not work apart")  # a bug of the caller
    return _Branch(owner.record.thread, parent, at)


def _plan(store: Store, environ: Mapping[str, str], branch: _Branch, source: str) -> Worktree:
    origin = find_split_origin(store, branch.parent, branch.at)
    if origin is None or origin.source != source:
        origin = note_origin(store, environ, branch.parent, at=branch.at, source=source)
    path = place_of(store, branch.thread)
    if path is None:
        raise Refused(
            "there is no home directory to keep the worktrees of branches in",
            code="no-place-for-worktrees",
            hint="set HOME, or XDG_STATE_HOME to a directory of yours",
        )
    return Worktree(
        branch.thread,
        branch.parent,
        source,
        origin.repository,
        origin.commit,
        path,
        os.path.join(path, origin.prefix).rstrip(os.sep),
    )


def _add(store: Store, environ: Mapping[str, str], worktree: Worktree) -> str:
    """Make the worktree as `git worktree add` does, and return its git directory."""
    git = git_of(environ, worktree.repository)
    head = find_head_of(environ, worktree) or worktree.base
    # Half of one may be there, of a process that was killed: no agent has run in it.
    if os.path.lexists(worktree.path):
        git.run("worktree", "remove", "--force", "--force", worktree.path)
        shutil.rmtree(worktree.path, ignore_errors=True)
    # That git would start one with the config of the repository.
    own = os.path.join(worktree.repository, "worktrees", worktree.thread)
    shutil.rmtree(own, ignore_errors=True)
    for folder in (own, worktree.path):
        os.makedirs(folder)
    named = os.path.join(worktree.path, ".git")
    texts = {"HEAD": head, "commondir": "../..", "gitdir": named}
    for path, text in [(os.path.join(own, name), text) for name, text in texts.items()]:
        replace_file(path, os.fsencode(text) + b"\n", durable=False)
    replace_file(named, b"gitdir: " + os.fsencode(own) + b"\n", durable=False)
    share_sparseness(worktree.repository, own)
    kept = find_settings(store, worktree.parent)
    git = git_of(environ, own, worktree=worktree.path, kept=kept)
    git.run_guarded("read-tree", "--reset", "-u", "--no-recurse-submodules", head)
    return own


def find_head_of(environ: Mapping[str, str], worktree: Worktree) -> str | None:
    """Return the newest commit in the worktree, or of its work; None if git knows neither."""
    if worktree.git_dir and os.path.isdir(worktree.git_dir):
        places = [(worktree.git_dir, "HEAD"), (worktree.repository, name_work(worktree.thread))]
    else:
        places = [(worktree.repository, name_work(worktree.thread))]
    for git_dir, name in places:
        ran = git_of(environ, git_dir).run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if not ran.status:
            return ran.stdout.decode().strip()
    return None
