"""Each verb goes on from what a plain `git fetch` brought, which moves tracking refs only."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from commands.forging import messages
from commands.sharing import Sites, hub, sites
from commands.world import World, content_player
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.agents.command_line import DEFAULT_GRACE_S
from uwf_git.commands.control.answer import resume_thread, retry_thread
from uwf_git.commands.step.ending import end_thread
from uwf_git.commands.turn.branches import WrongStatus
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.event_folds import merge_patch
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.history import walk_history


@pytest.mark.parametrize("is_own", [True, False])
def test_thread_that_a_function_plays_is_killed_when_it_returns(
    world: World, thread: ThreadId, monkeypatch: pytest.MonkeyPatch, *, is_own: bool
) -> None:
    """test_stop_agent.py tests which processes a kill ends, and how."""
    if not is_own:
        monkeypatch.setattr("uwf_git.commands.agent_run.runs._PATIENCE_S", -DEFAULT_GRACE_S)

    def play(turn: Turn) -> Played:
        with ThreadPoolExecutor(1) as pool:
            for steer in (partial(world.pause, now=True), world.resume, world.kill):
                steer(thread) if is_own else pool.submit(steer, thread).result()
        return content_player(turn)

    assert world.step(thread, play).status == "ready"
    record = world.snapshot(thread).record
    assert (record.status, record.depth) == ("killed", 1)


def test_thread_that_is_steered_meanwhile_is_killed_all_the_same(
    world: World, thread: ThreadId, monkeypatch: pytest.MonkeyPatch
) -> None:
    steered: list[str] = []

    def end(*args: Any, **said: Any) -> Any:
        if not steered:
            steered.append(world.pause(thread).status)
        return end_thread(*args, **said)

    monkeypatch.setattr("uwf_git.commands.step.ending.end_thread", end)

    world.kill(thread)

    assert steered == ["paused"]
    snapshot = world.snapshot(thread)
    assert snapshot.record.status == "killed"
    events = [each.record.event for each in walk_history(world.store, snapshot.commit.oid)]
    assert events == ["kill", "pause", "start"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
PATCHES = st.lists(
    st.dictionaries(st.sampled_from("abc"), JSON, min_size=1, max_size=3), max_size=4
)


@given(patches=PATCHES)
# The third is the node of the first, whose keys are in another order.
@example(patches=[{"b": 1, "c": 2}, {"b": None, "c": None}, {"c": 2, "b": 1}])
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_state_is_the_fold_of_all_patches(patches: list[dict[str, object]], world: World) -> None:
    thread = world.begun()
    expected: dict[str, object] = {}

    for patch in patches:
        world.patch(thread, patch)
        expected = merge_patch(expected, patch)

    assert world.snapshot(thread).get_present().state == expected
    assert messages(world, thread) == []


@pytest.mark.parametrize("patch", [5, {}, [{"op": "add"}]])
def test_what_is_no_merge_patch_changes_nothing(patch: object, world: World) -> None:
    thread = world.begun()
    before = world.tip(thread)

    with refuses("bad-patch") as caught:
        world.patch(thread, patch)

    assert caught.value.exit_status == 2
    assert world.tip(thread) == before


def test_what_is_not_paused_has_a_hint_to_what_its_status_asks_for(world: World) -> None:
    thread = world.begun()
    asked = world.start("human")
    world.step(asked)

    def hint(thread: str, verb: Callable[..., object] = resume_thread) -> str:
        with pytest.raises(WrongStatus) as caught:
            verb(world.store, world.caller, thread)
        return str(caught.value.hint)

    assert "uwf thread step" in hint(thread)
    assert "uwf thread step" in hint(thread, retry_thread)
    assert "uwf thread answer" in hint(asked)
    world.fail(thread)
    assert "uwf thread retry" in hint(thread)
    world.pause(thread)
    assert "uwf thread resume" in hint(thread, retry_thread)


__all__ = ["hub", "sites"]

VERBS: dict[str, Callable[[World, ThreadId], object]] = {
    "kill": lambda world, thread: world.kill(thread),
    "patch": lambda world, thread: world.patch(thread, {"a": 1}),
    "pause": lambda world, thread: world.pause(thread),
    "poke": lambda world, thread: world.poke(thread),
}


@pytest.mark.parametrize("verb", VERBS)
def test_verb_goes_on_from_what_git_fetched(
    verb: str, sites: Sites, git: Callable[..., str]
) -> None:
    here, there, thread = sites
    there.step(thread)
    there.push()
    taken = there.find(f"threads/{thread}")
    git("fetch", "--quiet", "origin", cwd=here.path)
    assert here.find(f"threads/{thread}") != taken
    here.world.reopen()

    VERBS[verb](here.world, thread)

    tip = here.world.snapshot(thread)
    assert tip.record.event == verb
    assert [each.commit.oid for each in walk_history(here.world.store, tip.commit.oid)][1] == taken
