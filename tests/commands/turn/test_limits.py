"""Which limits a thread begins with, and that no step goes beyond them."""

from typing import Any

import pytest
from commands.world import DEMO, World, fails, says
from refusing import refuses

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.start import StartRequest
from uwf_git.commands.turn.limits import LimitReached, choose_limits
from uwf_git.commands.turn.turn import StepFiles
from uwf_git.model.names import ThreadId


def begun(world: World, source: str = DEMO, agent: str = "nobody", **limits: Any) -> ThreadId:
    world.put(source)
    return world.begin(StartRequest("demo", "x", (agent,), limits=limits))


def test_typed_limit_comes_before_the_workflows() -> None:
    config = {"maxSteps": 5, "maxTokens": 100, "eventEmit": True}

    assert choose_limits({}, config) == {"maxSteps": 5, "maxTokens": 100}
    assert choose_limits({"maxCost": 1, "maxSteps": 9}, config) == {
        "maxSteps": 9,
        "maxTokens": 100,
        "maxCost": 1,
    }
    assert choose_limits({"maxSteps": None, "maxCost": None}, config) == {"maxTokens": 100}
    assert list(choose_limits({"maxCost": 1, "maxSteps": 1}, {})) == ["maxSteps", "maxCost"]


@pytest.mark.parametrize("config", [{"maxSteps": "5"}, {"maxCost": -1}, {"maxTokens": [1]}])
def test_limit_of_a_workflow_from_elsewhere_is_looked_at(config: dict[str, Any]) -> None:
    with refuses("bad-limit", match="must be"):
        choose_limits({}, config)
    # The start of a thread can drop these limits.
    assert choose_limits(dict.fromkeys(config), config) == {}


@pytest.mark.parametrize(
    ("limits", "usage", "told"),
    [
        ({"maxSteps": 1}, {}, "1 of 1 steps are taken"),
        ({"maxExecutionTime": 1500}, {}, "1.5 s of 1.5 s of execution time are used"),
        ({"maxTokens": 30}, {"inputTokens": 20, "outputTokens": 15}, "35 of 30 tokens are used"),
        ({"maxCost": 0.25}, {"costUsd": 0.25}, "$0.2500 of $0.2500 are spent"),
    ],
)
def test_step_beyond_a_limit_is_refused_before_anybody_is_paid(
    limits: dict[str, Any], usage: dict[str, Any], told: str, world: World
) -> None:
    thread = begun(world, **limits)
    world.step(thread, says({"text": "x"}, usage=usage))
    before = world.tip(thread)

    with pytest.raises(LimitReached) as caught:
        world.step(thread, lambda _turn: pytest.fail("it was paid"))

    assert told in caught.value.message
    assert f"`uwf thread amend {thread} --max-" in (caught.value.hint or "")
    assert world.tip(thread) == before
    world.amend(thread, limits=dict.fromkeys(limits, 10**6))
    assert world.step(thread).depth == 2
    world.assert_whole()


def test_failed_tries_cost_as_well(world: World) -> None:
    thread = begun(world, maxTokens=10)
    world.fail(thread, fails(left=StepFiles(usage={"outputTokens": 10})))
    world.retry(thread)

    with pytest.raises(LimitReached):
        world.step(thread)
    world.assert_whole()


def test_agent_is_stopped_when_the_time_of_the_thread_is_over_and_that_is_said(
    world: World,
) -> None:
    """Of two limits on time the one that struck is named, and no work is lost."""
    program = world.program("echo 'half of it'; echo 'at work' >&2; sleep 60")
    thread = begun(world, agent=program, maxExecutionTime=700)

    failed = world.fail(thread, agent_player(None))

    assert "it took longer than the 0.7 s of execution time that the thread had left" in (
        failed.message
    )
    assert f"uwf thread amend {thread} --max-execution-time" in (failed.hint or "")
    assert failed.facts["kind"] == "timed-out"
    snapshot = world.snapshot(thread)
    present = snapshot.get_present()
    assert present.execution_ms >= 700
    assert present.last_attempt is not None
    attempt = snapshot.get_node(present.last_attempt).payload
    kept = [snapshot.get_node(attempt[name]["$ref"]).payload for name in ("content", "stderr")]
    assert kept == ["half of it\n", "at work\n"]
    world.retry(thread)
    with pytest.raises(LimitReached, match=r"of 0\.7 s of execution time are used"):
        world.step(thread)
    world.assert_whole()
