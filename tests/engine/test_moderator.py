from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.engine.expression import evaluate_condition
from uwf_git.engine.lazy_list import lazy_list
from uwf_git.engine.moderator import Position, StepSummary, build_context, next_role
from uwf_git.model.workflow import END, START, Graph, Transition


def at(role: str, meta: Mapping[str, object], depth: int = 3) -> Position:
    return Position(
        role=role,
        meta=meta,
        depth=depth,
        state={"errors": 0},
        prompt="fix it",
        iteration=2,
        start_time_ms=1_700_000_000_000,
    )


def no_history() -> list[StepSummary]:
    def read(_place: int) -> StepSummary:
        raise AssertionError("history was read")

    return lazy_list(9_999, read)


def test_the_context_has_the_keys_that_the_design_names() -> None:
    steps = [StepSummary("planner", {"plan": ["a"]}), StepSummary("developer", {})]
    context = build_context(at("reviewer", {"approved": False}), lambda: steps)
    assert context == {
        "role": "reviewer",
        "meta": {"approved": False},
        "depth": 3,
        "history": (
            {"role": "planner", "meta": {"plan": ["a"]}},
            {"role": "developer", "meta": {}},
        ),
        "state": {"errors": 0},
        "prompt": "fix it",
        "iteration": 2,
        "startTime": 1_700_000_000_000,
    }


@pytest.mark.parametrize("depth", [0, 1])
def test_where_no_step_came_before_no_history_is_loaded(depth: int) -> None:
    assert build_context(at(START, {}, depth), no_history)["history"] == ()


def test_routing_on_meta_loads_no_history() -> None:
    context = build_context(at("reviewer", {"approved": False}, 10_000), no_history)
    assert evaluate_condition("meta.approved = false and depth > 9", context)


ROLES = ["planner", "developer", "reviewer", "tester"]
CONDITIONS = ["a", "b", "c", "d"]

transitions = st.builds(
    Transition,
    to=st.sampled_from([*ROLES, END]),
    condition=st.none() | st.sampled_from(CONDITIONS),
)
graphs = st.dictionaries(
    st.sampled_from([START, *ROLES]), st.lists(transitions, max_size=5).map(tuple), min_size=1
)
answers = st.fixed_dictionaries({condition: st.booleans() for condition in CONDITIONS})


@given(graph=graphs, answer=answers, data=st.data())
def test_any_graph_gives_a_role_it_names_or_end_or_says_that_none_holds(
    graph: Graph, answer: dict[str, bool], data: st.DataObject
) -> None:
    position = data.draw(st.sampled_from(sorted(graph)))
    open_ways = [
        way.to for way in graph[position] if way.condition is None or answer[way.condition]
    ]
    if open_ways:
        assert next_role(graph, position, answer.__getitem__) == open_ways[0]
        assert open_ways[0] in {*ROLES, END}
    else:
        with refuses("no-transition"):
            next_role(graph, position, answer.__getitem__)
