"""As test_each_event.py, with every byte."""

import pytest
from commands.verify.test_each_event import MORE, change_bytes
from commands.verify.test_each_event import store as store  # noqa: PLC0414 (a fixture)

from uwf_git.model.thread import EVENTS
from uwf_git.store.store import Store


@pytest.mark.parametrize("kind", sorted({*EVENTS, *MORE}))
def test_no_byte_at_all_can_be_another(store: Store, kind: str) -> None:
    change_bytes(store, kind, 1)
