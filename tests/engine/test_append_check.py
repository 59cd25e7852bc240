"""An append adds: all else in the workflow is as it was."""

from typing import Any

import pytest

from uwf_git.engine.flow_move import Rules, find_other_change
from uwf_git.model.flow import parse_flow
from uwf_git.model.workflow import Transition

_AGENT = {"type": "agent", "agentId": "a"}
_NODES = {
    "0": {"type": "sequential"},
    "0/0": _AGENT,
    "0/1": {"type": "conditional", "condition": "true"},
    "0/1/0": _AGENT,
}
_PAYLOAD = {"name": "w", "description": "D.", "roles": {"a": "1"}, "flow": "f"}
_TO_END = Transition("$END", None)
_AGAIN = Transition("a", "depth < 3")
_GRAPH = {"$START": (Transition("a", None),), "a": (_AGAIN, _TO_END)}


def flow(more: dict[str, Any] | None = None, *, language: str = "javascript") -> Rules:
    payload = {"nodes": {**_NODES, **(more or {})}, "language": language}
    return Rules(_PAYLOAD, parse_flow(payload), None)


def graph(ways: dict[str, tuple[Transition, ...]]) -> Rules:
    return Rules(_PAYLOAD, None, _GRAPH | ways)


@pytest.mark.parametrize(
    "more",
    [
        {"1": _AGENT},
        {"1": _AGENT, "2": {"type": "loop"}, "2/0": _AGENT},
        {"0/2": _AGENT},
        {"0/1/1": _AGENT, "0/1/2": _AGENT},
        {"1": {"type": "conditional", "condition": "1"}, "1/0": _AGENT, "1/e0": _AGENT},
    ],
)
def test_nodes_at_the_end_of_one_list_are_an_append(more: dict[str, Any]) -> None:
    assert find_other_change(flow(), flow(more)) is None


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"0/0": {"type": "agent", "agentId": "b"}}, "differs at 0/0"),
        ({"1": _AGENT, "0/2": _AGENT}, "has new nodes in several lists: 1, 0/2"),
        ({"0/1/e0": _AGENT}, "has a new node in an else: 0/1/e0"),
    ],
)
def test_what_no_append_does_to_a_flow_is_told(more: dict[str, Any], told: str) -> None:
    assert find_other_change(flow(), flow(more)) == told


def test_a_node_that_is_gone_and_another_language_are_told() -> None:
    assert find_other_change(flow({"1": _AGENT}), flow()) == "differs at 1"
    assert find_other_change(flow(), flow(language="jsonata")) == "is in jsonata"
    assert find_other_change(flow(), graph({})) == "is of another kind"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"roles": {"a": "2", "b": "3"}, "agentOverrides": {"b": {}}}, None),
        ({"roles": {"b": "3"}}, "lacks a in roles"),
        ({"description": "E."}, "has another description"),
        ({"initialState": {}}, "has another initialState"),
    ],
)
def test_roles_are_added_or_replaced_and_nothing_else(
    change: dict[str, Any], told: str | None
) -> None:
    old = flow()

    assert find_other_change(old, old._replace(payload=_PAYLOAD | change)) == told


@pytest.mark.parametrize(
    ("ways", "told"),
    [
        ({"a": (Transition("b", "x"), _AGAIN, _TO_END), "b": (_TO_END,)}, None),
        ({"a": (Transition("b", None),), "b": (_TO_END,)}, None),
        ({"a": (Transition("b", "x"),)}, "lacks ways from a"),
        ({"$START": ()}, "lacks ways from $START"),
    ],
)
def test_ways_of_a_graph_are_added(
    ways: dict[str, tuple[Transition, ...]], told: str | None
) -> None:
    assert find_other_change(graph({}), graph(ways)) == told
