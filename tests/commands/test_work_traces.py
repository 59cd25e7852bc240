import os
from pathlib import Path

from commands.world import World

from uwf_git.commands.work_traces import has_traces, list_traces
from uwf_git.store.store import memory_store
from uwf_git.store.thread_lock import lock_drive, lock_stop, lock_thread


def test_thread_that_is_at_rest_has_none(world: World) -> None:
    thread = world.begun()
    world.step(thread)

    assert not has_traces(world.store, thread)
    assert list_traces(world.store) == []
    # What it was locked with is there still.
    assert os.path.exists(world.store.local_path("locks", thread))


def test_step_driver_and_run_leave_some(world: World) -> None:
    stepped, driven, left = (world.begun() for _ in range(3))
    Path(world.store.local_path("run", left)).mkdir(parents=True)
    with (
        lock_thread(world.store, stepped, since_ms=1),
        lock_drive(world.store, driven, since_ms=1),
    ):
        assert list_traces(world.store) == [left, driven, stepped]
        assert all(has_traces(world.store, each) for each in (left, driven, stepped))
    assert list_traces(world.store) == [left]


def test_who_ends_a_thread_leaves_none(world: World) -> None:
    thread = world.begun()
    with lock_stop(world.store, thread, since_ms=1):
        assert not has_traces(world.store, thread)
        assert list_traces(world.store) == []


def test_what_is_no_threads_is_none(world: World) -> None:
    locks = Path(world.store.local_path("locks"))
    locks.mkdir(parents=True, exist_ok=True)
    (locks / "init").write_text("x")
    (locks / ("0" * 25 + "é")).write_text("x")
    Path(world.store.local_path("run")).mkdir()
    (Path(world.store.local_path("run")) / "x").mkdir()

    assert list_traces(world.store) == []


def test_store_in_memory_has_none(world: World) -> None:
    thread = world.begun()
    assert list_traces(memory_store()) == []
    assert not has_traces(memory_store(), thread)
