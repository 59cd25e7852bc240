"""`uwf remote remove`: a remote is forgotten.

Always true: what came from it and was taken over stays; what was only seen there goes.
"""

from uwf_git.store.remotes import Remote, choose_remote, forget_remote
from uwf_git.store.store import Store
from uwf_git.store.tracking import forget_tracking


def remove(store: Store, name: str) -> Remote:
    """Forget the remote *name*, and its tracking refs.

    Raises:
        NoSuchRemote: there is none of that name, or it is the user's and not this repository's.
        RefLocked: another git process holds what has to go.
    """
    remote = choose_remote(store.config, name)
    # Settings last: killed in between, the same command does the rest.
    forget_tracking(store, remote)
    forget_remote(store, name)
    return remote
