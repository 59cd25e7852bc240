"""Work directories: where the agent of a step runs.

Owns: the rule that a thread from elsewhere asks for one.
"""

import os

from uwf_git.errors import Refused
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.store import Store
from uwf_git.store.workdirs import find_workdir, set_workdir


class WorkdirUnknown(Refused):
    """Nobody has told this machine where the thread's agents run."""

    code = "workdir-unknown"

    def __init__(self, thread: ThreadId) -> None:
        super().__init__(
            f"thread {thread} came from elsewhere and has no work directory here",
            hint=f"say where its agents may work: `uwf thread step {thread} --workdir PATH`",
            thread=thread,
        )


class NotADirectory(Refused):
    """The work directory is not there, or no directory."""

    code = "not-a-directory"

    def __init__(self, path: str) -> None:
        problem = "is not a directory" if os.path.lexists(path) else "is not there"
        super().__init__(
            f"the work directory {path} {problem}",
            hint="make it, or name another with --workdir PATH",
            path=path,
        )


def choose_workdir(store: Store, thread: ThreadId, cwd: str, *, named: str | None) -> str:
    """Give the directory in which the agents of *thread* run; *named* is remembered.

    Raises:
        WorkdirUnknown: nobody ever said.
        NotADirectory: it is not there.
    """
    if named is not None:
        path = existing_directory(named, cwd)
        set_workdir(store, thread, path)
        return path
    if not store.is_kept:
        return cwd
    known = find_workdir(store, thread)
    if known is None:
        raise WorkdirUnknown(thread)
    return existing_directory(known, cwd)


def existing_directory(path: str, cwd: str) -> str:
    """Give *path* absolute.

    Raises:
        NotADirectory: there is no such directory.
    """
    absolute = os.path.abspath(os.path.join(cwd, os.path.expanduser(path)))
    if not os.path.isdir(absolute):
        raise NotADirectory(absolute)
    return absolute
