from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.engine.expression import evaluate_condition
from uwf_git.engine.moderator import Position, StepSummary, build_context, next_role
from uwf_git.model.workflow import END, START, Graph, Transition

SOLVE_ISSUE: Graph = {
    START: (Transition("planner", None),),
    "planner": (
        Transition("developer", "$not($exists(meta.needsClarification))"),
        Transition(END, None),
    ),
    "developer": (Transition("reviewer", None),),
    "reviewer": (Transition("developer", "meta.approved = false"), Transition(END, None)),
    "stuck": (Transition("planner", "meta.go"), Transition(END, "meta.stop")),
}


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


def never_asked(condition: str) -> bool:
    raise AssertionError(condition)


def no_history() -> list[StepSummary]:
    raise AssertionError("history was loaded")


@pytest.mark.parametrize(
    ("role", "meta", "following"),
    [
        (START, {}, "planner"),
        ("planner", {"plan": ["a"]}, "developer"),
        ("planner", {"needsClarification": "which bug?"}, END),
        ("developer", {}, "reviewer"),
        ("reviewer", {"approved": False}, "developer"),
        ("reviewer", {"approved": True}, END),
        ("reviewer", {}, END),
    ],
)
def test_the_seeds_workflow_routes_as_the_seed_says(
    role: str, meta: dict[str, object], following: str
) -> None:
    context = build_context(at(role, meta), no_history)
    chosen = next_role(SOLVE_ISSUE, role, lambda text: evaluate_condition(text, context))
    assert chosen == following


def test_the_first_that_holds_wins_and_the_rest_is_not_evaluated() -> None:
    asked: list[str] = []

    def holds(condition: str) -> bool:
        asked.append(condition)
        return condition == "b"

    graph = {"r": (Transition("x", "a"), Transition("y", "b"), Transition("z", "c"))}
    assert next_role(graph, "r", holds) == "y"
    assert asked == ["a", "b"]


def test_no_transition_that_holds_is_an_error_that_names_the_role() -> None:
    with refuses("no-transition", match="no transition from stuck holds") as caught:
        next_role(SOLVE_ISSUE, "stuck", lambda _: False)
    assert caught.value.exit_status == 1
    assert caught.value.facts["asked"] == [
        {"to": "planner", "condition": "meta.go"},
        {"to": END, "condition": "meta.stop"},
    ]


def test_a_role_without_any_way_out_has_no_transition() -> None:
    with refuses("no-transition", match="from r holds"):
        next_role({"r": ()}, "r", never_asked)


@pytest.mark.parametrize("graph", [SOLVE_ISSUE, {}])
def test_a_position_outside_the_graph_is_refused(graph: Graph) -> None:
    with refuses("unknown-position", match="no transitions from tester") as caught:
        next_role(graph, "tester", never_asked)
    assert caught.value.facts["known"] == list(graph)


def test_what_a_condition_raises_reaches_the_caller() -> None:
    def fail(condition: str) -> bool:
        raise ZeroDivisionError(condition)

    with pytest.raises(ZeroDivisionError):
        next_role(SOLVE_ISSUE, "reviewer", fail)


def test_the_context_has_the_keys_that_the_design_names() -> None:
    steps = [StepSummary("planner", {"plan": ["a"]}), StepSummary("developer", {})]
    context = build_context(at("reviewer", {"approved": False}), lambda: steps)
    assert context == {
        "role": "reviewer",
        "meta": {"approved": False},
        "depth": 3,
        "history": [
            {"role": "planner", "meta": {"plan": ["a"]}},
            {"role": "developer", "meta": {}},
        ],
        "state": {"errors": 0},
        "prompt": "fix it",
        "iteration": 2,
        "startTime": 1_700_000_000_000,
    }


@pytest.mark.parametrize("depth", [0, 1])
def test_where_no_step_came_before_no_history_is_loaded(depth: int) -> None:
    assert build_context(at(START, {}, depth), no_history)["history"] == []


def test_second_step_has_the_first_for_its_history() -> None:
    context = build_context(
        at("developer", {}, 2), lambda: [StepSummary("planner", {"plan": ["a"]})]
    )

    assert evaluate_condition("$count(history) = 1 and history[0].meta.plan = ['a']", context)


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


def test_after_an_unconditional_transition_none_is_evaluated() -> None:
    graph = {"r": (Transition("x", None), Transition("y", "b"))}
    assert next_role(graph, "r", never_asked) == "x"
