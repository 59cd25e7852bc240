"""The fixtures of the tests of commands."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands.at_work import end_all
from commands.flows import Split, split_checks
from commands.sharing import hub, shared, sites
from commands.world import World, make_world
from fresh_store import fresh_store
from store.signing_keys import key

from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store

__all__ = ["hub", "key", "shared", "sites", "store", "world"]


@pytest.fixture
def store() -> Store:
    """Return a new store without fsync."""
    return fresh_store()


@pytest.fixture
def world(tmp_path: Path, clock: Callable[[], int], thread_ids: Callable[[], ThreadId]) -> World:
    """Return an empty store, and a caller in a directory beside it."""
    return make_world(tmp_path, clock, thread_ids)


@pytest.fixture
def thread(world: World) -> ThreadId:
    """Return a thread of `demo` that has begun."""
    return world.begun()


@pytest.fixture
def split(world: World) -> Split:
    """Return a thread that has split in two; its branches have begun."""
    return split_checks(world)


@pytest.fixture
def nobody_is_left(world: World) -> Iterator[None]:
    """End all processes of agents after the test."""
    yield
    end_all(world)
