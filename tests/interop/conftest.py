"""Stores with a bit of everything in them, for git to judge."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commands.sharing import hub, shared, sites
from commands.world import World
from interop.told import Told, tell
from store.story import CLOSURE, WORKFLOW, Story, signed, tell_small_story

from uwf_git.commands.caller import Caller
from uwf_git.model.builtin import TEXT
from uwf_git.model.names import ThreadId
from uwf_git.model.node import build_node
from uwf_git.store.git.config import set_config
from uwf_git.store.lookup import put_nodes
from uwf_git.store.store import Store, create_store, open_store
from uwf_git.store.workflows import SourceFiles, add_version

__all__ = ["empty", "hub", "shared", "sites", "store", "told", "world"]

ENDED = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")
ACTIVE = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4V")


@pytest.fixture
def empty(tmp_path: Path) -> Store:
    """Return a bare repository that does not wait for the disk."""
    path = str(tmp_path / "store.git")
    create_store(path)
    set_config(f"{path}/config", "uwf.fsync", "false")
    return open_store(path)


@pytest.fixture
def store(empty: Store, clock: Callable[[], int]) -> Store:
    """Return a store with an ended and an active thread, a workflow of two versions, and nodes."""
    tell_small_story(empty, clock)
    Story(empty, clock, ACTIVE).step()
    added = ("demo", WORKFLOW, CLOSURE)
    one = add_version(
        empty, None, added=added, source=SourceFiles(b"name: demo\r\n"), signing=signed(clock())
    )
    add_version(
        empty,
        one,
        added=added,
        source=SourceFiles(b"name: demo # \xc3\xa9"),
        signing=signed(clock()),
    )
    put_nodes(empty, [build_node(TEXT, "put\r\nby hand\0", timestamp=1)], signed(clock()))
    return empty


@pytest.fixture
def world(
    empty: Store, tmp_path: Path, clock: Callable[[], int], thread_ids: Callable[[], ThreadId]
) -> World:
    """Return an empty store, and a caller in a directory beside it."""
    place = tmp_path / "place"
    place.mkdir()
    caller = Caller(clock, dict(os.environ), str(place))
    return World(place, open_store(empty.path, environ=os.environ), caller, thread_ids)


@pytest.fixture
def told(world: World) -> Told:
    """Return a store that commands have written."""
    active, ended = tell(world)
    return Told(world, active, ended)
