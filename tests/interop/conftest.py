"""Stores with a bit of everything in them, for git to judge."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commands.conftest import world
from commands.sharing import hub, shared, sites
from commands.world import World, make_store
from interop.forge import Forge
from interop.scene import Scene, make_scene
from interop.told import Told, tell
from store.story import CLOSURE, WORKFLOW, Story, signed, tell_small_story

from uwf_git.model.builtin import TEXT
from uwf_git.model.names import ThreadId
from uwf_git.model.node import build_node
from uwf_git.store.lookup import put_nodes
from uwf_git.store.store import Store
from uwf_git.store.workflows import SourceFiles, add_version

__all__ = ["empty", "hub", "shared", "sites", "store", "told", "world"]

ENDED = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")
ACTIVE = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4V")


@pytest.fixture
def empty(tmp_path: Path) -> Store:
    """Return a bare repository that does not wait for the disk."""
    return make_store(tmp_path / "store.git")


@pytest.fixture
def store(empty: Store, clock: Callable[[], int]) -> Store:
    """Return a store with an ended and an active thread, a workflow of two versions, and nodes."""
    tell_small_story(empty, clock)
    Story(empty, clock, ACTIVE).step()
    added, newest = ("demo", WORKFLOW, CLOSURE), None
    for text in (b"name: demo\r\n", b"name: demo # \xc3\xa9"):
        source, signing = SourceFiles(text), signed(clock())
        newest = add_version(empty, newest, added=added, source=source, signing=signing)
    put_nodes(empty, [build_node(TEXT, "put\r\nby hand\0", timestamp=1)], signed(clock()))
    return empty


@pytest.fixture
def told(world: World) -> Told:
    """Return a store that commands have written."""
    active, ended = tell(world)
    return Told(world, active, ended)


@pytest.fixture(scope="module")
def scene(sealed_run: object, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    """Return the scene of a hostile push, which is for all tests of a module."""
    return make_scene(tmp_path_factory.mktemp("hostile"))


@pytest.fixture
def forge(scene: Scene) -> Forge:
    """Return its honest step, to be changed."""
    return scene.honest.copy()
