"""A model that goes in circles."""

from typing import Any

from uwf_git.agentkit.llm.messages import ToolCall
from uwf_git.agentkit.react.repeats import Repeats


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("id", name, arguments)


def test_the_third_time_the_same_call_with_the_same_outcome_is_blocked() -> None:
    repeats = Repeats()
    for _ in range(2):
        assert not repeats.blocks(call("ls", a=1, b=2))
        repeats.add(call("ls", a=1, b=2), "x", changed=False)
    assert repeats.blocks(call("ls", b=2, a=1))
    assert not repeats.blocks(call("ls", a=1))


def test_calls_in_turns_are_a_circle_too() -> None:
    repeats = Repeats()
    for _ in range(2):
        for name in ("ls", "cat"):
            assert not repeats.blocks(call(name))
            repeats.add(call(name), name, changed=False)
    assert repeats.blocks(call("ls"))


def test_an_outcome_that_differs_is_no_circle() -> None:
    repeats = Repeats()
    for outcome in ("1", "2", "3", "4"):
        assert not repeats.blocks(call("ls"))
        repeats.add(call("ls"), outcome, changed=False)


def test_a_change_begins_anew() -> None:
    repeats = Repeats()
    for _ in range(5):
        assert not repeats.blocks(call("make"))
        repeats.add(call("make"), "error", changed=False)
        repeats.add(call("patch_file"), "changed", changed=True)


def test_model_that_repeats_a_blocked_call_is_stuck() -> None:
    repeats = Repeats()
    for _ in range(2):
        repeats.add(call("ls"), "x", changed=False)
    for _ in range(3):
        assert not repeats.is_stuck
        assert repeats.blocks(call("ls"))
    assert repeats.is_stuck
