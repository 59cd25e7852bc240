"""Steps of a verified node, killed at every moment: no work and no verdict is made twice."""

import pytest
from commands.killed import kill_everywhere, make_folders
from commands.world import World, replied

from uwf_git.commands.step.record_turn import TriesUsedUp
from uwf_git.commands.step.step_thread import StepRequest, step_thread
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.history import walk_history

VERIFIED = """\
name: verified
description: Work, and a verdict.
root:
  type: agent
  agentId: executor
  retries: 1
  verifiedBy: {agentId: verifier, when: meta.verified}
"""


def play(turn: Turn) -> Played:
    """Play both: the first try is rejected."""
    tried = turn.present.tried
    return replied({"verified": turn.role == "verifier" and tried is not None and tried.number > 1})


def reject(_turn: Turn) -> Played:
    """Play both, and reject every try."""
    return replied({"verified": False})


def steps_of(world: World, thread: ThreadId) -> list[str | None]:
    history = walk_history(world.store, world.tip(thread))
    return [each.record.role for each in history if each.record.event == "step"][::-1]


@pytest.mark.parametrize("done", range(4))
def test_a_try_killed_anywhere_goes_on_where_it_was(world: World, done: int) -> None:
    thread = world.stepped(play, source=VERIFIED, times=done)

    def step(copy: World) -> object:
        return step_thread(copy.store, copy.caller, StepRequest(thread, play))

    make_folders(world, step)

    def again(copy: World) -> None:
        for _ in range(6):
            if copy.snapshot(thread).record.status != "completed":
                copy.step(thread, play)
        assert copy.snapshot(thread).record.status == "completed"
        assert steps_of(copy, thread) == ["executor", "verifier"] * 2

    assert kill_everywhere(world, step, again) > 10


def test_the_last_rejection_killed_anywhere_fails_the_thread_once(world: World) -> None:
    thread = world.stepped(reject, source=VERIFIED, times=3)

    def step(copy: World) -> None:
        with pytest.raises(TriesUsedUp):
            step_thread(copy.store, copy.caller, StepRequest(thread, reject))

    make_folders(world, step)

    def again(copy: World) -> None:
        if copy.snapshot(thread).record.status == "ready":
            step(copy)
        assert copy.snapshot(thread).record.status == "failed"
        assert steps_of(copy, thread) == ["executor", "verifier"] * 2

    assert kill_everywhere(world, step, again) > 10
