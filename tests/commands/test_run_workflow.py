import pytest
from commands.world import World, content_player, fails, replied

from uwf_git.commands.run_workflow import drive_thread
from uwf_git.commands.thread_step import Stepped, StepRequest, TurnFailed
from uwf_git.commands.turn import Played, Player, Turn


def drive(
    world: World, thread: str, play: Player = content_player, most: int | None = None
) -> tuple[list[Stepped], int]:
    seen: list[Stepped] = []
    ran = drive_thread(
        world.store, world.caller, StepRequest(thread, play), max_steps=most, on_step=seen.append
    )
    assert ran.last is seen[-1]
    return seen, ran.steps


def test_thread_is_driven_to_its_end(world: World) -> None:
    seen, steps = drive(world, world.begun())

    assert [each.role for each in seen] == ["writer", "checker", None]
    assert (steps, seen[-1].status) == (2, "completed")


def test_run_stops_after_so_many_steps_and_goes_on_later(world: World) -> None:
    thread = world.begun()

    assert [each.role for each in drive(world, thread, most=1)[0]] == ["writer"]
    assert [each.role for each in drive(world, thread, most=1)[0]] == ["checker"]
    seen, steps = drive(world, thread, most=1)

    assert (seen[-1].status, steps) == ("completed", 0)


def test_failed_step_ends_the_run_and_keeps_the_steps_before_it(world: World) -> None:
    thread = world.begun()

    def play(turn: Turn) -> Played:
        return fails()(turn) if turn.role == "checker" else replied({"text": "x"})

    with pytest.raises(TurnFailed):
        drive(world, thread, play)

    assert world.snapshot(thread).record.depth == 1
    assert drive(world, thread)[0][-1].status == "completed"
