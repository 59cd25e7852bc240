"""A usage limit that an agent hits: the thread waits until it ends."""

import pytest
from commands.world import World, fails
from seal import START_MS

from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.branches import ThreadNotReady
from uwf_git.commands.turn.turn import Player, StepFiles
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import Waiting

LATER_MS = START_MS + 24 * 3600 * 1000

# An agent as its author writes it, whose model is tired until a certain second.


def hit(world: World, thread: ThreadId, until: int = LATER_MS) -> TurnFailed:
    """Fail an attempt by a limit that ends at *until*."""
    return world.fail(thread, limited(until))


def limited(until: int) -> Player:
    return fails("slow down", left=StepFiles(kind="rate-limit", reset_at=until))


def come(world: World, now_ms: int) -> None:
    """Set the caller's clock to *now_ms*."""
    world.caller = world.caller._replace(now_ms=lambda: now_ms)


def test_thread_waits_for_the_end_of_the_limit_and_says_so(world: World, thread: ThreadId) -> None:
    failure = hit(world, thread)

    snapshot = world.snapshot(thread)
    assert failure.facts["status"] == snapshot.record.status == "waiting"
    assert "--wait` sleeps until then" in (failure.hint or "")
    assert snapshot.get_present().waiting == Waiting("writer", LATER_MS)
    with pytest.raises(ThreadNotReady) as caught:
        world.step(thread)
    assert "waits until 2025-10-10 08:53:20 UTC: the agent of writer hit" in caught.value.message
    assert f"`uwf thread resume {thread}` lets it try now" in (caught.value.hint or "")
    world.assert_whole()


def test_thread_can_be_stepped_from_the_moment_on_at_which_the_limit_ends(world: World) -> None:
    thread = world.begun()
    hit(world, thread)

    come(world, LATER_MS - 1)
    with pytest.raises(ThreadNotReady):
        world.step(thread)
    come(world, LATER_MS)
    assert world.step(thread).status == "ready"

    present = world.snapshot(thread).get_present()
    assert (present.waiting, present.attempts) == (None, 0)
    world.assert_whole()
