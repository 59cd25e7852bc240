"""Forget the work of a branch whose thread is removed: its ref in the user's repository."""

import os
import shlex
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.commands.split.ending import name_work
from uwf_git.commands.worktree.record import (
    Inner,
    Worktree,
    find_any_split_origin,
    find_worktree,
    forget_worktree,
)
from uwf_git.commands.worktree.repository import find_commit, git_of
from uwf_git.commands.worktree.retire import sweep_worktrees
from uwf_git.errors import Conflict
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store


class WorktreeStays(Conflict):
    """The worktree of an ended branch holds what cannot be kept, or is in use."""

    code = "worktree-stays"

    def __init__(self, worktree: Worktree) -> None:
        super().__init__(
            f"the worktree of branch {worktree.thread} is still there: {worktree.path}",
            hint="a branch works in it, or its work cannot be kept, as `git -C "
            f"{shlex.quote(worktree.path)} add --all --dry-run` may show; after that `uwf gc` "
            "removes it",
            thread=worktree.thread,
            path=worktree.path,
        )


class ForgottenWork(NamedTuple):
    """The work of a branch, whose ref was deleted; its commit stays until git prunes it."""

    ref: str
    commit: str
    repository: str
    inner: tuple[Inner, ...] = ()
    """The same of repositories inside it."""


def remove_left_worktree(
    store: Store, environ: Mapping[str, str], *, thread: ThreadId, parent: ThreadId
) -> None:
    """Remove the worktree of *thread*, a branch of *parent* that has ended, if it is still there.

    Raises:
        WorktreeStays: it cannot be removed yet.
    """
    found = find_worktree(store, parent, thread)
    if found is None or found.is_removed:
        return
    sweep_worktrees(store, environ, [parent])
    found = find_worktree(store, parent, thread)
    if found is not None and not found.is_removed:
        raise WorktreeStays(found)


def forget_work(
    store: Store, environ: Mapping[str, str], *, thread: ThreadId, parent: ThreadId
) -> ForgottenWork | None:
    """Delete the refs of the work of *thread*, a branch of *parent*, and what is recorded of it.

    Returns:
        What it was; None if there is none on this machine.

    Raises:
        ProgramFailed: git is missing, or failed.
    """
    # A branch in which nothing ran has no worktree, but a ref.
    found = find_worktree(store, parent, thread)
    origin = found or find_any_split_origin(store, parent)
    inner = [] if found is None else [each for each in found.inner if _forget(environ, each)]
    work = None
    if origin is not None and os.path.isdir(origin.repository):
        work = _delete_ref(environ, origin.repository, name_work(thread))
    if work is not None:
        work = work._replace(inner=tuple(inner))
    forget_worktree(store, parent, thread)
    return work


def _forget(environ: Mapping[str, str], inner: Inner) -> bool:
    is_there = os.path.isdir(inner.repository)
    return is_there and _delete_ref(environ, inner.repository, inner.ref) is not None


def _delete_ref(environ: Mapping[str, str], repository: str, ref: str) -> ForgottenWork | None:
    git = git_of(environ, repository)
    commit = find_commit(git, ref)
    if commit is None:
        return None
    git.ask("update-ref", "-d", ref, commit)
    return ForgottenWork(ref, commit, repository)
