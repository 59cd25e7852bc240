"""Telling of events: what a command has done to threads goes to `uwf.onEvent`.

Owns: the one call by which it is told of, and the note of what did not work.
Knows nothing of: events. Always true: it costs nothing where nobody listens, and never fails or
changes the status of a command that is done.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from uwf_git.cli.render import note

if TYPE_CHECKING:
    # It costs dulwich, 60 ms, and is there only if a command has opened one.
    from uwf_git.store.store import Store


def tell_events(store: "Store", environ: Mapping[str, str]) -> None:
    """Tell of what was done through *store* since the last time; call it with no lock held.

    Every command does so when it is done; one that goes on for long calls it in between.
    """
    if not store.config.get("uwf.onEvent"):
        return
    from uwf_git.commands.announce_events import (  # noqa: PLC0415 (few have a listener)
        announce_events,
    )

    problem = announce_events(store, environ)
    if problem is not None:
        note(f"note: {problem}")


def tell_of_opened(stores: list["Store"], environ: Mapping[str, str]) -> None:
    """Tell of what was done through *stores*, as the last thing that a command does."""
    # Whoever interrupts a listener does not mean the command: that is done.
    with suppress(KeyboardInterrupt):
        for store in stores:
            tell_events(store, environ)
