"""`uwf remote add`: a name for another repository.

Always true: a URL with a password in it is kept as it was given, and never shown.
"""

from uwf_git.commands.caller import Caller
from uwf_git.store.remotes import Remote, add_remote
from uwf_git.store.store import Store


def add(store: Store, caller: Caller, name: str, url: str) -> Remote:
    """Remember the repository at *url* as *name*; nobody is asked whether it is there.

    Raises:
        BadRemoteName, BadRemoteUrl: git or we could do nothing with them.
        RemoteExists: the name is taken.
    """
    return add_remote(store, name, url, cwd=caller.cwd)
