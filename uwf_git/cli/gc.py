"""`uwf gc`."""

import contextlib
import os
from collections.abc import Mapping
from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.screen import emit, note
from uwf_git.cli.session import Session
from uwf_git.commands.admin.gc import gc_if_due, gc_store, gc_unwatched
from uwf_git.store.gc.packing import Counted

_BACKGROUND_NICE = 10
_UNITS = ("bytes", "KiB", "MiB", "GiB")
_UNIT = 1024


@verb(
    "uwf gc",
    "uwf gc --format text",
    exits={4: "another gc runs on the store"},
)
@click.option("--auto", is_flag=True, help="Only if it is needed, and only what is needed.")
@click.option("--detached", is_flag=True, hidden=True)
def command(session: Session, *, auto: bool, detached: bool) -> None:
    """Pack the store.

    Objects go into one file, refs into another, and files left by killed processes are removed.
    Nothing that a ref needs is lost, and steps may run meanwhile. git does the packing.

    A store packs itself in the background when steps have written many objects. git's own settings
    say when: gc.auto (0 is never), gc.autoPackLimit, gc.pruneExpire, gc.autoDetach. Large packs
    are left alone then (gc.bigPackThreshold, 8m unless set).
    """
    store = session.open_store()
    if detached:
        with contextlib.suppress(OSError):
            os.nice(_BACKGROUND_NICE)
        gc_unwatched(store, session.environ)
        return
    if auto:
        emit(session, {"packed": gc_if_due(store, session.environ)})
        return
    packed = gc_store(store, session.environ)
    if packed.last_failure is not None:
        note(f"the last packing in the background failed: {packed.last_failure}")
    document = {
        "packer": "git",
        "before": _counted(packed.before),
        "after": _counted(packed.after),
        "swept": packed.swept,
    }
    emit(session, document, text=_text)


def _counted(counted: Counted) -> dict[str, int]:
    return {
        "looseObjects": counted.loose_objects,
        "packs": counted.packs,
        "bytes": counted.size_bytes,
    }


def _text(document: Mapping[str, Any]) -> str:
    before, after, swept = document["before"], document["after"], document["swept"]
    told = f"packed by {document['packer']}\nbefore: {_told(before)}\nafter:  {_told(after)}"
    return told + (f"\nswept:  {_many(swept, 'leftover')} of killed processes" if swept else "")


def _told(counted: Mapping[str, int]) -> str:
    loose, packs = _many(counted["looseObjects"], "loose object"), _many(counted["packs"], "pack")
    return f"{loose}, {packs}, {_size(counted['bytes'])}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")


def _size(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < _UNIT:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= _UNIT
    return f"{size:,.1f} {_UNITS[-1]}"
