import os
from pathlib import Path

from commands.turns import begin_turn
from commands.world import World
from fresh_store import fresh_store

from uwf_git.commands.control.steer import patch_thread
from uwf_git.commands.events.journal import find_open_turn, list_open_turns


def test_turn_that_is_played_is_found(world: World) -> None:
    thread = world.begun()
    base = begin_turn(world, thread)
    os.utime(Path(world.store.local_path("run", thread, base), "pid"), ns=(0, 5_000_000))

    (turn,) = list_open_turns(world.store)

    assert (turn.started_after, turn.role, turn.agent) == (base, "writer", "nobody")
    assert (turn.started_ms, turn.node.iteration, turn.attempt) == (5, 1, 1)
    assert turn.record.thread == thread
    assert list(list_open_turns(world.store, known={base})) == []


def test_steered_thread_is_at_the_same_turn(world: World) -> None:
    thread = world.begun()
    base = begin_turn(world, thread)
    patch_thread(world.store, world.caller, thread, {"a": 1})

    turn = find_open_turn(world.store, thread)

    assert turn is not None
    assert turn.started_after == base


def test_turn_is_open_no_more_once_it_is_recorded(world: World) -> None:
    thread = world.begun()
    base = world.snapshot(thread).commit.oid
    world.step(thread)
    run_dir = Path(world.store.local_path("run", thread, base))
    run_dir.mkdir(parents=True)
    (run_dir / "pid").write_text("1\n")

    assert find_open_turn(world.store, thread) is None


def test_turn_that_has_not_begun_is_not_open(world: World) -> None:
    thread = world.begun()
    begin_turn(world, thread, begun=False)

    assert find_open_turn(world.store, thread) is None


def test_nothing_is_open_where_nothing_ever_ran(world: World) -> None:
    assert list(list_open_turns(world.store)) == []
    assert list(list_open_turns(fresh_store())) == []


def test_damaged_thread_has_no_turn_that_anybody_could_tell(world: World) -> None:
    thread = world.begun()
    begin_turn(world, thread)
    Path(world.store.path, "refs/threads", thread).write_text("garbage\n")

    assert list(list_open_turns(world.store)) == []
