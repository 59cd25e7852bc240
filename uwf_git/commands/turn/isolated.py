"""Where a branch works: in its trunk's work directory, or apart in a worktree of its own."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.commands.split.trunk import find_owner
from uwf_git.commands.turn.workdir import choose_workdir, existing_directory, workdir_unknown
from uwf_git.store.store import Store
from uwf_git.store.threads.history import read_trunk
from uwf_git.store.threads.local_files import find_workdir, set_workdir
from uwf_git.store.threads.snapshot import Snapshot


class AskedPlace(NamedTuple):
    """What a step says of where its agents run."""

    environ: Mapping[str, str]
    cwd: str
    named: str | None
    """``--workdir``."""


def choose_place(store: Store, snapshot: Snapshot, asked: AskedPlace) -> str:
    """Return the directory in which the agents of a thread run; make its worktree if it has one.

    A named directory is remembered, or is the one from which the worktree is made.

    Raises:
        Refused: there is none here.
        NotADirectory: it does not exist.
        Refused: somebody removed the worktree; a named directory makes it again.
        Refused, ProgramFailed: no worktree can be made.
    """
    thread = snapshot.record.thread
    owner = find_owner(store, snapshot)
    if owner is None:
        return choose_workdir(store, thread, asked.cwd, named=asked.named)
    path = _open_worktree(store, owner, asked)
    if find_workdir(store, thread) != path:
        set_workdir(store, thread, path)
    return path


def _open_worktree(store: Store, owner: Snapshot, asked: AskedPlace) -> str:
    from uwf_git.commands.worktree.make import (  # noqa: PLC0415 (few branches work apart)
        find_own_worktree,
        make_worktree,
        worktree_gone,
    )

    known = find_own_worktree(store, owner)
    if known is not None and known.git_dir:
        if os.path.isdir(known.workdir):
            return known.workdir
        if asked.named is None:
            raise worktree_gone(known)
    trunk = read_trunk(store, owner)
    if trunk is not None and find_owner(store, trunk) is not None:
        source = choose_place(store, trunk, asked)
    elif asked.named is not None:
        source = existing_directory(asked.named, asked.cwd)
    else:
        found = find_source(store, owner)
        if found is None:
            raise workdir_unknown(owner.record.thread)
        source = existing_directory(found, asked.cwd)
    return make_worktree(store, asked.environ, owner, source=source).workdir


def find_source(store: Store, snapshot: Snapshot) -> str | None:
    """Return the user's directory for a thread: its own, or that of which its worktree was made.

    What its agents' commands mean is asked there, since a worktree is at another path each time.
    """
    owner = find_owner(store, snapshot)
    if owner is None:
        return find_workdir(store, snapshot.record.thread)
    from uwf_git.commands.worktree.make import find_own_worktree  # noqa: PLC0415 (see above)

    trunk = read_trunk(store, owner)
    above = None if trunk is None else find_source(store, trunk)
    known = find_own_worktree(store, owner)
    return above or (None if known is None else known.source)
