"""A thread in a store that is packed."""

from collections.abc import Callable

import pytest
from store.story import Story

from uwf_git.store.store import Store


@pytest.fixture
def story(store: Store, clock: Callable[[], int]) -> Story:
    """Return a thread of a few steps."""
    told = Story(store, clock)
    for number in range(9):
        told.step(text=f"text {number}")
    return told
