from typing import Any

import pytest
from commands.world import World, content_player

from uwf_git.commands.step.step_thread import StepRequest, step_thread
from uwf_git.commands.turn.branches import ThreadNotReady
from uwf_git.model.event_folds import Words
from uwf_git.model.thread import Event, Status, Waiting
from uwf_git.store.threads.record import NewCommit, record_next


@pytest.mark.parametrize(
    ("event", "status", "changes", "words"),
    [
        ("pause", "paused", {"paused_from": "ready"}, ("is paused", "uwf thread resume")),
        ("attempt", "failed", {"failures": 1}, ("has failed$", "uwf thread retry")),
        ("attempt", "failed", {"failures": 2}, ("has failed, after 2 failed attempts$", "retry")),
        (
            "wait",
            "waiting",
            {"waiting": Waiting("writer")},
            ("waits for a person", "thread answer"),
        ),
        (
            "attempt",
            "waiting",
            {"waiting": Waiting("writer", 4_000_000_000_000)},
            ("waits until 2096-10-02", "--wait"),
        ),
        # Only a forged one: a thread that waits says for what.
        ("attempt", "waiting", {}, ("is waiting, not ready$", "uwf thread")),
    ],
)
def test_thread_that_is_not_ready_is_not_driven_and_says_what_to_type(
    world: World, event: Event, status: Status, changes: dict[str, Any], words: tuple[str, str]
) -> None:
    told, hint = words
    thread = world.begun()
    snapshot = world.snapshot(thread)
    moved = NewCommit(
        record=snapshot.record._replace(event=event, status=status),
        words=Words("a moment"),
        present=snapshot.get_present()._replace(**changes),
    )
    commit = record_next(world.store, snapshot, moved, world.caller.signing(world.store))
    assert world.store.refs.advance(f"refs/threads/{thread}", seen=snapshot.commit.oid, to=commit)

    with pytest.raises(ThreadNotReady, match=f"thread {thread} {told}") as caught:
        step_thread(world.store, world.caller, StepRequest(thread, content_player, is_driven=True))
    assert caught.value.exit_status == 1
    assert hint in (caught.value.hint or "")
    assert caught.value.facts["status"] == status
