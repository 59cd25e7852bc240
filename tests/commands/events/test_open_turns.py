import os
from pathlib import Path

from commands.turns import begin_turn
from commands.world import World

from uwf_git.commands.events.journal import list_open_turns


def test_turn_that_is_played_is_found(world: World) -> None:
    thread = world.begun()
    base = begin_turn(world, thread)
    os.utime(Path(world.store.local_path("run", thread, base), "pid"), ns=(0, 5_000_000))

    (turn,) = list_open_turns(world.store)

    assert (turn.started_after, turn.role, turn.agent) == (base, "writer", "nobody")
    assert (turn.started_ms, turn.node.iteration, turn.attempt) == (5, 1, 1)
    assert turn.record.thread == thread
    assert list(list_open_turns(world.store, known={base})) == []


def test_damaged_thread_has_no_turn_that_anybody_could_tell(world: World) -> None:
    thread = world.begun()
    begin_turn(world, thread)
    Path(world.store.path, "refs/threads", thread).write_text("garbage\n")

    assert list(list_open_turns(world.store)) == []
