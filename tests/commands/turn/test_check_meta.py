import json
from typing import Any

import pytest
from commands.world import World, fails, replied, says

from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.turn import StepFiles

SCHEMA = """\
name: strict
roles:
  worker:
    outputSchema: %s
moderator:
  - {from: $START, to: worker}
  - {from: worker, to: $END}
"""


def failure(world: World, schema: Any, meta: Any, **fields: Any) -> TurnFailed:
    thread = world.begun(SCHEMA % json.dumps(schema))
    failed = world.fail(thread, lambda _turn: replied(meta, **fields))
    assert failed.facts["kind"] == "schema"
    assert world.snapshot(thread).record.depth == 0
    return failed


def test_pattern_that_runs_for_ever_is_stopped_and_reported(world: World) -> None:
    failed = failure(world, {"type": "string", "pattern": "^(a+)+$"}, "a" * 64 + "!")

    assert "cannot be checked" in failed.message
    assert "took too much time" in failed.message


@pytest.mark.parametrize(
    ("place", "fields"),
    [
        ("meta.text", {"meta": {"text": "\ud800"}}),
        ("meta[0]", {"meta": [float("nan")]}),
        ("state.a", {"state": {"a": "\udc00"}}),
        ("usage.tokens", {"usage": {"tokens": float("inf")}}),
        ("session", {"session": "\ud800"}),
        ("content", {"content": "\ud800"}),
    ],
)
def test_what_no_node_can_hold_is_a_failed_attempt(
    place: str, fields: dict[str, Any], world: World
) -> None:
    failed = failure(world, {}, **{"meta": {}, **fields})

    assert f"the value at $.{place} " in failed.message


@pytest.mark.parametrize(
    ("meta", "content"),
    [({"a": "x" * 33_000_000}, "x"), ({}, "\ufffd" * 11_000_000)],
    ids=["fields", "text"],
)
def test_answer_that_no_shared_store_would_take_is_a_failed_attempt(
    meta: Any, content: str, world: World
) -> None:
    failed = failure(world, {"type": "object"}, meta, content=content)
    assert "more than 31m" in failed.reason


def test_usage_below_zero_is_refused_and_told_to_the_next_try(world: World) -> None:
    failed = failure(world, {}, {}, usage={"costUsd": -5, "inputTokens": 1})

    assert "usage: costUsd is -5" in failed.message


def test_usage_of_a_failed_try_does_not_lower_what_was_spent(world: World) -> None:
    thread = world.begun()
    world.step(thread, says({"text": "x"}, usage={"costUsd": 3}))

    world.fail(thread, fails(left=StepFiles(usage={"costUsd": -3})))

    assert world.snapshot(thread).get_present().usage == {"costUsd": 3}
