"""Expressions of flows where a thread stands, in both languages."""

from typing import Any

import pytest

from uwf_git.engine.flow_words import BadFlowValue, FlowWords
from uwf_git.errors import Refused
from uwf_git.model.flow import FlowNode

STATE = {"n": 3, "name": "Ann", "list": [1, 2], "none": None}


def words(language: str = "javascript", **items: Any) -> FlowWords:
    return FlowWords(language, STATE, prompt="Do it.", depth=4, items=items)


def node(**fields: Any) -> FlowNode:
    return FlowNode("0", "loop", fields)


@pytest.mark.parametrize(
    ("language", "condition", "holds"),
    [
        ("javascript", "state.n === 3 && iteration < 2", True),
        ("javascript", "state.iteration > 0 || item.big", True),
        ("javascript", "state.none", False),
        ("javascript", "prompt.length + depth === 10", True),
        ("jsonata", "state.n = 3 and iteration < 2", True),
        ("jsonata", "item.big = true", True),
        ("jsonata", "state.missing", False),
    ],
)
def test_a_condition_is_answered_in_its_language(
    language: str,
    condition: str,
    holds: bool,  # noqa: FBT001 (pytest's parameters)
) -> None:
    assert words(language, item={"big": True}).is_true(node(condition=condition), 1) is holds


def test_a_condition_that_has_no_value_is_an_error() -> None:
    with pytest.raises(Refused, match="expression"):
        words().is_true(node(condition="state.missing.deep"), 0)


@pytest.mark.parametrize(
    ("language", "template", "filled"),
    [
        ("javascript", "${state.list}", [1, 2]),
        ("javascript", "n is ${state.n}, ${state.list}", "n is 3, [1,2]"),
        ("javascript", "plain", "plain"),
        (
            "javascript",
            {"a": "${state.n}", "b": ["x", "${prompt}"]},
            {"a": 3, "b": ["x", "Do it."]},
        ),
        ("jsonata", "${state.list}", [1, 2]),
        ("jsonata", "for ${state.name}: ${state.n + 1}", "for Ann: 4"),
        ("jsonata", '${ {"a": state.n} }', {"a": 3}),
        ("jsonata", "${state.none}", None),
    ],
)
def test_a_template_keeps_the_type_alone_and_is_text_within_text(
    language: str, template: Any, filled: Any
) -> None:
    assert words(language).fill(template, 0) == filled


@pytest.mark.parametrize(
    ("bound", "count"), [("${state.n}", 3), (7, 7), ("${state.n * 2}", 6), (None, 100)]
)
def test_a_bound_is_a_number_or_a_template(bound: Any, count: int) -> None:
    fields = {} if bound is None else {"maxIterations": bound}
    assert words().count_bound(node(**fields), 0) == count


@pytest.mark.parametrize("bound", ["${state.name}", "${state.n / 2}", "${state.n - 3}", "${true}"])
def test_a_bound_that_is_no_count_is_an_error(bound: str) -> None:
    with pytest.raises(BadFlowValue, match="maxIterations"):
        words().count_bound(node(maxIterations=bound), 0)


@pytest.mark.parametrize("language", ["javascript", "jsonata"])
@pytest.mark.parametrize("over", ["state.list", "${state.list}"])
def test_a_map_goes_over_a_list(language: str, over: str) -> None:
    assert words(language).list_items(node(over=over), 0) == [1, 2]


def test_a_map_over_something_else_is_an_error() -> None:
    with pytest.raises(BadFlowValue, match="no list"):
        words().list_items(node(over="state.name"), 0)
