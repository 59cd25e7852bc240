"""The layout below `<git dir>/uwf/run/`."""

import os
from pathlib import Path

import pytest

from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.locks import hold_lock
from uwf_git.store.store import Store
from uwf_git.store.threads.local_files import (
    RunDir,
    get_run_dir,
    has_runs,
    is_any_alive,
    remove_runs,
)

THREAD = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")
COMMIT = Oid("5" * 40)


@pytest.fixture
def run(store: Store) -> RunDir:
    found = get_run_dir(store, THREAD, COMMIT)
    found.begin("writer 3QZ82VBH2MY12 nobody")
    os.makedirs(found.path)
    os.makedirs(found.step_dir)
    return found


def test_turn_that_begins_discards_an_older_run(run: RunDir) -> None:
    Path(run.path, "exit").write_text("0\n")
    Path(run.step_dir, "failure.json").write_text("{}")
    run.write_stop_reason("lunch")

    run.begin("checker 3QZ82VBH2MY12 somebody")

    assert run.read("turn") == "checker 3QZ82VBH2MY12 somebody"
    assert run.read_stop_reason() is None
    assert not os.path.exists(run.path)
    assert not os.path.exists(run.step_dir)


def test_turn_that_is_unreadable_is_none(run: RunDir) -> None:
    Path(run.path + ".turn").write_bytes(b"\xff")

    assert run.read("turn") == ""


def test_agent_is_alive_while_it_holds_the_lock(store: Store, run: RunDir) -> None:
    assert not run.is_alive()
    with hold_lock(run.alive, wait=False):
        assert run.is_alive()
        assert is_any_alive(store, THREAD)
        with run.hold_alive() as alive:
            assert alive is None
    assert not is_any_alive(store, THREAD)


def test_nothing_is_left_of_a_run_that_is_removed(store: Store, run: RunDir) -> None:
    other = get_run_dir(store, THREAD, Oid("6" * 40))
    other.begin("writer")
    run.write_stop_reason("lunch")
    assert not run.is_alive()

    run.remove()

    assert os.listdir(os.path.dirname(run.path)) == ["6" * 40 + ".turn"]
    remove_runs(store, THREAD)
    assert not has_runs(store, THREAD)
