"""The fixtures of the tests of commands."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commands.sharing import hub, shared, sites
from commands.world import World
from fresh_store import fresh_store
from store.signing_keys import key

from uwf_git.commands.caller import Caller
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.git.config import set_config
from uwf_git.store.store import Store, create_store, open_store

__all__ = ["hub", "key", "shared", "sites", "store", "world"]


@pytest.fixture
def store() -> Store:
    """Return a new store without fsync."""
    return fresh_store()


@pytest.fixture
def world(tmp_path: Path, clock: Callable[[], int], thread_ids: Callable[[], ThreadId]) -> World:
    """Return an empty store, and a caller in a directory beside it."""
    store = create_store(str(tmp_path / "store.git"))
    # No test loses power, so fsync would only cost time.
    set_config(os.path.join(store.path, "config"), "uwf.fsync", "false")
    place = tmp_path / "place"
    place.mkdir()
    caller = Caller(clock, dict(os.environ), str(place))
    return World(place, open_store(store.path, environ=os.environ), caller, thread_ids)
