from typing import Any

import pytest

from uwf_git.engine.flow_state import (
    MAX_STATE_BYTES,
    find_patch_problem,
    find_state_problem,
    fold_result,
    read_state,
    result_value,
    without_iteration,
)


@pytest.mark.parametrize(
    ("meta", "content", "value"),
    [
        ({"ok": True}, "words", {"ok": True}),
        ({}, "words", "words"),
        (None, "words", "words"),
        ({}, '{"a": [1, 2.0]}', {"a": [1, 2]}),
        ({}, " 42\n", 42),
        (None, "null", None),
        ([], "words", []),
        (False, "words", False),
        ({}, "", ""),
        ({}, "NaN", "NaN"),
        ({}, "1e999", "1e999"),
        ({}, '"\\ud800"', '"\\ud800"'),
        ({}, '{"a": 1, "a": 2}', '{"a": 1, "a": 2}'),
        ({}, "1 2", "1 2"),
        ({}, "[" * 502 + "]" * 502, "[" * 502 + "]" * 502),
        ({}, "[" * 90_000, "[" * 90_000),
        ({}, "9" * 5_000, "9" * 5_000),
    ],
)
def test_a_result_is_its_meta_or_what_it_said(meta: Any, content: str, value: Any) -> None:
    found = result_value(meta, content)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("state", "reply", "folded"),
    [
        ({"a": 1}, {"meta": {"b": 2}}, {"a": 1, "b": 2, "out": {"b": 2}}),
        # Members are set, not merged: null stays, an object replaces.
        (
            {"a": {"x": 1}, "b": 1},
            {"meta": {"a": {"y": 2}, "b": None}},
            {"a": {"y": 2}, "b": None, "out": {"a": {"y": 2}, "b": None}},
        ),
        # The output comes after the members, and the patch after both.
        ({}, {"meta": {"out": 1, "b": 2}}, {"out": {"out": 1, "b": 2}, "b": 2}),
        (
            {"a": {"x": 1}},
            {"meta": {"b": 2}, "patch": {"a": {"y": 2}, "b": None, "out": 3}},
            {"a": {"x": 1, "y": 2}, "out": 3},
        ),
        ({"a": 1}, {"meta": ["x"]}, {"a": 1, "out": ["x"]}),
        ({"a": 1}, {"meta": {}, "content": "said"}, {"a": 1, "out": "said"}),
        # The engine counts.
        (
            {"iteration": 7},
            {"meta": {"iteration": 8}, "patch": {"iteration": 9}},
            {"out": {"iteration": 8}},
        ),
    ],
)
def test_a_table_of_results(
    state: dict[str, Any], reply: dict[str, Any], folded: dict[str, Any]
) -> None:
    before = repr(state)
    assert fold_result(state, output="out", **{"content": "", **reply}) == folded
    assert repr(state) == before


def test_iteration_is_read_and_never_stored() -> None:
    read = read_state({"a": 1}, 3)
    assert read == {"a": 1, "iteration": 3}
    assert without_iteration(read) == {"a": 1}


def test_a_patch_of_iteration_is_refused() -> None:
    assert find_patch_problem({"a": 1}) is None
    assert find_patch_problem({"a": {"iteration": 1}}) is None
    assert "cannot be patched" in (find_patch_problem({"iteration": None}) or "")


def test_a_state_has_at_most_a_mebibyte_of_json() -> None:
    room = MAX_STATE_BYTES - len('{"a":""}')
    assert find_state_problem({"a": "x" * room}) is None
    assert find_state_problem({"a": "ü" * (room // 2)}) is None
    assert "1,048,577 bytes" in (find_state_problem({"a": "x" * (room + 1)}) or "")


def test_a_state_has_no_more_levels_than_a_node() -> None:
    deep: Any = "end"
    for _level in range(500):
        deep = [deep]
    assert "500 levels" in (find_state_problem({"a": deep}) or "")
    assert find_state_problem({"a": deep[0]}) is None
