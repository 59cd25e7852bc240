"""Which limits a thread begins with, and that no step goes beyond them."""

from typing import Any

import pytest
from commands.turns import branches
from commands.world import DEMO, World, fails, says
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.start import StartRequest
from uwf_git.commands.turn.flow import (
    KeepRules,
    LimitReached,
    RetryRules,
    choose_limits,
    read_keep_rules,
    read_retry,
    read_spending,
    record_env,
)
from uwf_git.commands.turn.turn import Player, StepFiles
from uwf_git.model.names import ThreadId
from uwf_git.store.git.config import GitConfig


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


def test_amount_that_an_older_version_registered_still_begins_a_thread() -> None:
    assert choose_limits({}, {"maxCost": 1e-7}) == {"maxCost": 1e-7}
    with refuses("bad-limit"):
        choose_limits({"maxCost": 1e-7}, {})


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


@pytest.mark.parametrize(
    "play",
    [
        fails(left=StepFiles(usage={"outputTokens": 10})),
        says({"text": 5}, usage={"outputTokens": 10}),
    ],
    ids=["failed", "refused by the schema"],
)
def test_failed_tries_cost_as_well(play: Player, world: World) -> None:
    thread = begun(world, maxTokens=10)
    world.fail(thread, play)
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


def config(**values: str) -> GitConfig:
    return GitConfig({f"uwf.{name.lower()}": [value] for name, value in values.items()})


def test_64_kib_of_a_log_and_no_variable_are_kept_unless_it_is_set() -> None:
    assert read_keep_rules(config()) == KeepRules(65536, ())
    assert read_keep_rules(config(keepLogs="1m", recordEnv="LANG, TZ NODE_*")) == KeepRules(
        1024 * 1024, ("LANG", "TZ", "NODE_*")
    )
    assert read_keep_rules(config(keepLogs="0")).log_bytes == 0


@pytest.mark.parametrize("value", ["much", "-1", "1.5", "64kb"])
def test_size_that_is_none_is_reported(value: str) -> None:
    with refuses("bad-keep-setting", match=r"uwf\.keepLogs is .*, not a size"):
        read_keep_rules(config(keepLogs=value))


def test_secret_is_masked_by_its_name_and_wherever_it_stands() -> None:
    environ = {
        "API_KEY": "sk-0123456789",
        "DB_PASSWORD": "short",
        "URL": "https://x/?key=sk-0123456789",
        "EMPTY_TOKEN": "",
    }

    assert record_env(environ, ("*",)) == {
        "API_KEY": "[masked]",
        "DB_PASSWORD": "[masked]",
        "EMPTY_TOKEN": "",
        "URL": "https://x/?key=[masked]",
    }


# What a thread and its branches spent together.

FLOW = """\
name: tree
config: {maxSteps: 50}
root:
  type: sequential
  nodes:
    - {type: agent, agentId: first}
    - type: parallel
      nodes:
        - {type: agent, agentId: one}
        - type: parallel
          nodes: [{type: agent, agentId: two}, {type: agent, agentId: three}]
"""


def test_each_step_and_try_counts_once_wherever_it_was(world: World) -> None:
    thread = world.stepped(says({}, usage={"inputTokens": 10}), source=FLOW)
    for _ in range(3):
        world.step(thread, fails(kind="lost"))
    one, inner = branches(world, thread)
    two, three = branches(world, inner)

    world.step(two, says({}, usage={"inputTokens": 5}))

    for each in (thread, one, inner, two, three):
        snapshot = world.snapshot(each)
        found = read_spending(world.store, snapshot, snapshot.get_present())
        assert found.thread == thread
        assert (found.present.depth, found.present.usage) == (2, {"inputTokens": 15})
        # Two steps of 1.5 s, and the lost tries of 0.5 s: two of one, one of two and three each.
        assert found.present.execution_ms == 2 * 1500 + 4 * 500


# How often an agent that failed is tried again, and how soon.


def try_in_vain(world: World, thread: ThreadId, *, kind: str = "exited") -> str:
    """Let a try fail, and return the resulting status."""
    world.fail(thread, fails("no model answered", kind=kind))
    return world.snapshot(thread).record.status


def test_agents_own_rules_come_before_the_configured_ones() -> None:
    configured = config(retries="3", backoff="10")

    assert read_retry(configured, {"retries": 1, "backoff": 0.5}) == RetryRules(1, 0.5)
    assert read_retry(configured, {"retries": 0, "backoff": 0}) == RetryRules(0, 0)
    assert read_retry(configured, {}) == RetryRules(3, 10)
    assert read_retry(config(), {}) == RetryRules(0, 1)


@given(st.floats(0, 1e6), st.integers(1, 1000))
def test_each_wait_is_as_long_as_the_one_before_or_longer(backoff_s: float, tries: int) -> None:
    rules = RetryRules(9, backoff_s)

    assert rules.wait_s(tries) <= rules.wait_s(tries + 1) <= 3600
    assert rules.wait_s(1) == min(backoff_s, 3600)


def test_retry_begins_the_count_anew_and_the_tries_stay(world: World) -> None:
    world.put(DEMO + "defaultAgent: {command: a, retries: 2, backoff: 0.5}\n")
    thread = world.begin(StartRequest("demo", "x", default_agent="nobody"))
    for _ in range(3):
        try_in_vain(world, thread)
    world.retry(thread)

    assert [try_in_vain(world, thread) for _ in range(3)] == ["ready", "ready", "failed"]
    assert world.snapshot(thread).get_present().attempts == 6


def test_meaningless_setting_is_reported_before_an_agent_runs(world: World) -> None:
    world.configure("uwf.retries", "some")
    thread = world.begun()

    with refuses("bad-retry-setting"):
        world.step(thread, lambda _turn: pytest.fail("it was paid"))

    assert world.snapshot(thread).record.event == "start"
