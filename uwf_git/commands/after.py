"""What follows a command that wrote: announce its transitions to `uwf.onEvent`, tidy the store.

And warn, once in a store, of a committer that git guessed.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from uwf_git.commands.worktree.record import take_those_that_stay
from uwf_git.store.durable import read_local, replace_file
from uwf_git.store.store import Store
from uwf_git.store.threads.local_files import SLOW_TO_RECORD, UNRECORDED, take_notes
from uwf_git.surroundings import Lazy

if TYPE_CHECKING:
    from uwf_git.commands import admin, commit_events
    from uwf_git.store import packing
    from uwf_git.store.git import program
else:
    admin = Lazy("uwf_git.commands.admin")  # once in some steps
    commit_events = Lazy("uwf_git.commands.commit_events")  # few stores have a listener
    packing = Lazy("uwf_git.store.packing")  # commands that read need no policy
    program = Lazy("uwf_git.store.git.program")  # and no identity

_WARNED = "guessed-committers"


def follow_up(store: Store, environ: Mapping[str, str]) -> str | None:
    """Announce what was recorded through *store* since the last call, then tidy the store if due.

    Call it when the result is printed and no lock is held. A command that wrote nothing and has no
    listener costs no import. Nothing here fails the command, which is done. Return in one line what
    went wrong with the listener, or why the store is not packed; None if all went well.
    """
    problem = None
    if store.config.get("uwf.onEvent"):
        problem = commit_events.announce_events(store, environ)
    if store.refs.has_changed:
        problem = _pack_if_due(store, environ) or problem
    return problem


def _pack_if_due(store: Store, environ: Mapping[str, str]) -> str | None:
    # On an OSError the next command tries again.
    with suppress(OSError):
        if packing.has_many_packs(store.path) or packing.find_due(store):
            return admin.tidy(store, environ)
    return None


def warn_of_worktrees(store: Store) -> list[str]:
    """Return a warning for each worktree of a branch whose work cannot be kept; each once."""
    return [
        f"the worktree of branch {thread} stays at {path}, since its work cannot be kept: "
        f"{reason}; mend that, and `uwf gc` keeps it and removes the worktree"
        for thread, path, reason in take_those_that_stay(store)
    ]


def warn_of_files(store: Store) -> list[str]:
    """Return a warning for each thread whose files are slow to record, or are not; each once."""
    told = {
        UNRECORDED: "the files of thread {} are not recorded: {}; its steps go on, and",
        SLOW_TO_RECORD: "to record the files of thread {} takes {} before and after each step;",
    }
    return [
        f"{words.format(thread, note.decode())} `uwf config set uwf.recordFiles false` turns "
        "recording off"
        for kind, words in told.items()
        for thread, note in take_notes(store, kind).items()
    ]


def warn_of_guess(store: Store, environ: Mapping[str, str]) -> str | None:
    """Return a warning if a changed *store* has a guessed committer; each guess is told once."""
    if not store.refs.has_changed:
        return None
    # Without an identity nothing was committed: what changed was fetched.
    with suppress(program.NoIdentity, OSError):
        committer = program.find_committer(store.config, environ)
        line = committer.identity + b"\n"
        path = store.local_path(_WARNED)
        told = read_local(path)
        if committer.is_guess and line not in told.splitlines(keepends=True):
            replace_file(path, told + line, durable=False)
            return (
                f"git has no address of yours, so commits are by {line.decode().strip()}; set it: "
                "`git config --global user.email ADDRESS`, and user.name"
            )
    return None
