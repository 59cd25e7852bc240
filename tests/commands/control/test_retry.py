import pytest
from commands.forging import messages
from commands.world import World, content_player, fails

from uwf_git.commands.control.steer import pause_thread, retry_thread
from uwf_git.commands.inspect.context import get_context
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.branches import WrongStatus
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.names import ThreadId


def failed(world: World) -> ThreadId:
    """Start a thread whose agent has used up its retries."""
    thread = world.begun()
    fail(world, thread)
    assert world.snapshot(thread).record.status == "failed"
    return thread


def fail(world: World, thread: ThreadId, message: str = "no key") -> None:
    with pytest.raises(TurnFailed):
        world.step(thread, fails(message))


def test_hint_reaches_every_try_and_is_gone_with_the_step(world: World) -> None:
    thread = failed(world)
    retry_thread(world.store, world.caller, thread, hint="look into spec/")
    seen: list[object] = []

    def play(turn: Turn) -> Played:
        context = get_context(world.store, thread)
        seen.append((context["hint"], context["lastError"]["message"], context["attempt"]))
        return fails("again")(turn) if len(seen) == 1 else content_player(turn)

    with pytest.raises(TurnFailed):
        world.step(thread, play)
    retry_thread(world.store, world.caller, thread, hint="and into lib/")
    world.step(thread, play)

    assert seen == [("look into spec/", "no key", 2), ("and into lib/", "again", 3)]
    assert get_context(world.store, thread)["hint"] is None
    assert messages(world) == []


def test_what_has_not_failed_has_a_hint_to_what_its_status_asks_for(world: World) -> None:
    ready, paused = world.begun(), failed(world)
    pause_thread(world.store, world.caller, paused)

    for thread, told in ((ready, "uwf thread step"), (paused, "uwf thread resume")):
        with pytest.raises(WrongStatus) as caught:
            retry_thread(world.store, world.caller, thread)
        assert told in str(caught.value.hint)
