"""First pushes: what `uwf push` would send out of a project's repository for the first time.

A project's remote has other readers than a store's: what was asked and answered may not be meant
for them.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple

from uwf_git.commands.remote.descendants import with_branches
from uwf_git.commands.remote.push_plan import restrict
from uwf_git.store.remotes.remotes import Remote, choose_remote, refuse_mirror, remote_url
from uwf_git.store.remotes.tracking import read_shared
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import resolve_thread


class FirstPush(NamedTuple):
    """What is sent for the first time, and where."""

    remote: Remote
    url: str
    """Where the push goes, without passwords."""

    threads: int
    workflows: int


def find_first_push(
    store: Store, name: str | None, threads: Sequence[str] = ()
) -> FirstPush | None:
    """Return what a push to the remote *name* would send, if nothing was shared with it before.

    None if the store is no project's repository, the remote has or had threads or workflows, or
    there is nothing to send.

    Raises:
        Refused: a remote of the store is a mirror.
        Refused, BadUsage: there is no remote to push to.
        NoSuchThread, AmbiguousThread, NotAThreadId: one of *threads* names no thread.
    """
    refuse_mirror(store.config)
    remote = choose_remote(store.config, name)
    if not is_project(store) or any(read_shared(store, remote).rows()):
        return None
    here = read_shared(store)
    if threads:
        ids = [resolve_thread(store, text) for text in threads]
        here = restrict(here, with_branches(store, ids))
    if not any(here.rows()):
        return None
    url = remote_url(store, remote, for_push=True)
    names = here.threads.keys() | here.archive.keys()
    return FirstPush(remote, url.shown, len(names), len(here.workflows))


def is_project(store: Store) -> bool:
    """Check whether the repository has a work tree."""
    # git guesses the same where the config does not say.
    is_bare = os.path.basename(store.path) != ".git"
    return not store.config.get_flag("core.bare", default=is_bare)
