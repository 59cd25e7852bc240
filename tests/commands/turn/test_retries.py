"""How often an agent that failed is tried again, and how soon."""

import pytest
from commands.world import DEMO, World, fails
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.commands.start import StartRequest
from uwf_git.commands.turn.limits import RetryRules, read_retry
from uwf_git.model.names import ThreadId
from uwf_git.store.git.config import GitConfig

PATIENT = DEMO + "defaultAgent: {command: a, retries: 2, backoff: 0.5}\n"


def config(**values: str) -> GitConfig:
    return GitConfig({f"uwf.{name}": [value] for name, value in values.items()})


def begun(world: World, source: str) -> ThreadId:
    world.put(source)
    return world.begin(StartRequest("demo", "x", default_agent="nobody"))


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
    thread = begun(world, PATIENT)
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
