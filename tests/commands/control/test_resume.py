import pytest
from commands.forging import messages
from commands.world import World, fails, replied

from uwf_git.commands.control.steer import pause_thread, resume_thread
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.branches import ThreadNotReady, WrongStatus
from uwf_git.commands.turn.turn import StepFiles

FAR_MS = 4_000_000_000_000


def test_what_is_not_paused_has_a_hint_to_what_its_status_asks_for(world: World) -> None:
    thread = world.begun()
    asked = world.start("human")
    world.step(asked)

    def hint(thread: str) -> str:
        with pytest.raises(WrongStatus) as caught:
            resume_thread(world.store, world.caller, thread)
        return str(caught.value.hint)

    assert "uwf thread step" in hint(thread)
    assert "uwf thread answer" in hint(asked)
    with pytest.raises(TurnFailed):
        world.step(thread, fails())
    assert "uwf thread retry" in hint(thread)


def test_wait_for_the_end_of_a_limit_can_be_cut_short(world: World) -> None:
    thread = world.begun()
    with pytest.raises(TurnFailed):
        world.step(thread, fails("too many requests", left=StepFiles(reset_at=FAR_MS)))
    assert world.snapshot(thread).record.status == "waiting"
    with pytest.raises(ThreadNotReady, match="waits until"):
        world.step(thread)

    resumed = resume_thread(world.store, world.caller, thread, reason="there is another key")

    assert resumed.status == "ready"
    assert world.snapshot(thread).get_present().waiting is None
    assert world.step(thread).role == "writer"
    assert messages(world) == []


def test_pause_of_a_wait_is_ended_first_and_then_the_wait(world: World) -> None:
    thread = world.begun()
    with pytest.raises(TurnFailed):
        world.step(thread, fails("too many requests", left=StepFiles(reset_at=FAR_MS)))
    pause_thread(world.store, world.caller, thread)

    assert resume_thread(world.store, world.caller, thread).status == "waiting"
    assert resume_thread(world.store, world.caller, thread).status == "ready"
    assert world.step(thread, lambda _turn: replied({"text": "x"})).status == "ready"
    assert messages(world) == []
