"""Work directories: where the agents of a step run. A thread from elsewhere needs one set."""

import os

from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.local_files import find_workdir, give_workdir, set_workdir


def workdir_unknown(thread: ThreadId) -> Refused:
    """Say that the thread has no work directory on this machine."""
    return Refused(
        f"thread {thread} came from elsewhere and has no work directory here",
        code="workdir-unknown",
        hint=f"say where its agents may work: `uwf thread step {thread} --workdir PATH`",
        thread=thread,
    )


class NotADirectory(Refused):
    """The work directory is missing or not a directory."""

    code = "not-a-directory"

    def __init__(self, path: str) -> None:
        problem = "is not a directory" if os.path.lexists(path) else "is not there"
        super().__init__(
            f"the work directory {path} {problem}",
            hint="make it, or name another with --workdir PATH",
            path=path,
        )


def choose_workdir(store: Store, thread: ThreadId, cwd: str, *, named: str | None) -> str:
    """Return the directory in which the agents of *thread* run; remember *named*.

    Raises:
        Refused: none was ever set here.
        NotADirectory: it does not exist.
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
        raise NotADirectory(absolute)
    return absolute
