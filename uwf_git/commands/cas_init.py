"""`json-cas init`: a git directory becomes a store that keeps the built-in schemas."""

from uwf_git.commands.caller import Caller
from uwf_git.commands.cas_bootstrap import bootstrap_store
from uwf_git.commands.init_store import Initialized, init_store


def init_cas(path: str | None, caller: Caller) -> Initialized:
    """Make the repository at *path* a store as `uwf init` does, and bootstrap it.

    Without a path: the default store of the user.

    Raises:
        UnsupportedRepository: the repository is of a kind that we cannot read.
        OSError: the machine would not let it be made.
    """
    made = init_store(path, caller.cwd, caller.environ)
    bootstrap_store(made.store, caller)
    return made
