"""Work directories: where the agents of a step run. A thread from elsewhere needs one set."""

import os
from typing import TYPE_CHECKING

from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.local_files import find_workdir, give_workdir, set_workdir

if TYPE_CHECKING:
    pass


def workdir_unknown(thread: ThreadId) -> Refused:
    """Say that the thread has no work directory on this machine."""
    return Refused(
        f"thread {thread} came from elsewhere and has no work directory here",
        code="workdir-unknown",
        hint=f"say where its agents may work: `uwf thread step {thread} --workdir PATH`",
        thread=thread,
    )


def not_a_directory(path: str) -> Refused:
    """Tell that the work directory is missing or not a directory."""
    problem = "is not a directory" if os.path.lexists(path) else "is not there"
    return Refused(
        f"the work directory {path} {problem}",
        code="not-a-directory",
        hint="make it, or name another with --workdir PATH",
        path=path,
    )


def choose_workdir(store: Store, thread: ThreadId, cwd: str, *, named: str | None) -> str:
    """Return the directory in which the agents of *thread* run; remember *named*.

    Raises:
        Refused: none was ever set here.
        Refused: it does not exist.
    """
    known = find_workdir(store, thread)
    if named is not None:
        path = existing_directory(named, cwd)
        (give_workdir if known is None else set_workdir)(store, thread, path)
        return path
    if known is None:
        raise workdir_unknown(thread)
    return existing_directory(known, cwd)


def existing_directory(path: str, cwd: str) -> str:
    """Return *path* as an absolute path, or raise ``NotADirectory``."""
    absolute = os.path.abspath(os.path.join(cwd, os.path.expanduser(path)))
    if not os.path.isdir(absolute):
        raise not_a_directory(absolute)
    return absolute
