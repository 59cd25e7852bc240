"""The fixture of the tests of reports: a small world."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commands.world import World, make_world

from uwf_git.model.names import ThreadId


@pytest.fixture
def world(tmp_path: Path, clock: Callable[[], int], thread_ids: Callable[[], ThreadId]) -> World:
    """Return an empty store, and a caller in a directory beside it."""
    return make_world(tmp_path, clock, thread_ids)
