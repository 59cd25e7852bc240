"""When a thread can be paused; what --now ends is in test_stop_agent.py."""

import pytest
from commands.forging import messages
from commands.world import World, fails

from uwf_git.commands.control.steer import pause_thread, resume_thread
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.branches import ThreadNotReady
from uwf_git.model.builtin import SIGNAL
from uwf_git.model.thread import Waiting


def test_paused_thread_takes_no_step_until_it_is_resumed(world: World) -> None:
    thread = world.begun()
    head = world.snapshot(thread).record.node

    paused = pause_thread(world.store, world.caller, thread, reason="the plan is to be read")

    assert (paused.thread, paused.head, paused.status) == (thread, head, "paused")
    with pytest.raises(ThreadNotReady) as caught:
        world.step(thread)
    assert "by C O Mitter <committer@example.com>: the plan is to be read" in caught.value.message
    assert caught.value.hint == (
        f"`uwf thread resume {thread}` lets it go on, then `uwf thread run {thread}`"
    )
    assert resume_thread(world.store, world.caller, thread).status == "ready"
    assert world.step(thread).status == "ready"
    assert messages(world) == []


def test_pause_records_its_author_and_reason(world: World) -> None:
    thread = world.begun()

    pause_thread(world.store, world.caller, thread, reason="Because.\n\nAnd so on.")

    snapshot = world.snapshot(thread)
    assert (snapshot.subject, snapshot.body) == ("pause: Because.", "Because.\n\nAnd so on.")
    assert snapshot.commit.author.startswith(b"C O Mitter <")
    assert snapshot.record.cause is not None
    signal = snapshot.get_node(snapshot.record.cause)
    assert signal.type == SIGNAL
    assert signal.payload == {"action": "pause", "reason": "Because.\n\nAnd so on."}


def test_thread_that_has_failed_or_waits_does_so_again_after_a_pause(world: World) -> None:
    thread = world.begun()
    with pytest.raises(TurnFailed):
        world.step(thread, fails())
    pause_thread(world.store, world.caller, thread)
    assert resume_thread(world.store, world.caller, thread).status == "failed"

    other = world.start("human", workflow=world.snapshot(thread).record.workflow)
    world.step(other)
    pause_thread(world.store, world.caller, other)
    assert world.snapshot(other).get_present().paused_from == "waiting"
    assert resume_thread(world.store, world.caller, other).status == "waiting"
    assert world.snapshot(other).get_present().waiting == Waiting("writer")
    assert messages(world) == []
