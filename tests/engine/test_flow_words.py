"""Expressions of flows where a thread stands, in both languages."""

from typing import Any

import pytest
from flow_trees import Tree, as_flow
from refusing import refuses

from uwf_git.engine.flow_move import FlowWords, next_move
from uwf_git.errors import Refused
from uwf_git.model.flow import FlowNode, parse_position

STATE: dict[str, Any] = {"n": 3, "name": "Ann", "list": [1, 2], "none": None}


HERE = parse_position("0")
AGENT: Tree = {"type": "agent", "agentId": "a"}


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
    assert words(language, item={"big": True}).is_true(node(condition=condition), 1, HERE) is holds


def test_a_condition_that_has_no_value_is_an_error() -> None:
    with pytest.raises(Refused, match="expression"):
        words().is_true(node(condition="state.missing.deep"), 0, HERE)


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
    assert words(language).fill(template, 0, HERE) == filled


@pytest.mark.parametrize(
    ("bound", "count"), [("${state.n}", 3), (7, 7), ("${state.n * 2}", 6), (None, 100)]
)
def test_a_bound_is_a_number_or_a_template(bound: Any, count: int) -> None:
    fields = {} if bound is None else {"maxIterations": bound}
    assert words().count_bound(node(**fields), 0, HERE) == count


@pytest.mark.parametrize("bound", ["${state.name}", "${state.n / 2}", "${state.n - 3}", "${true}"])
def test_a_bound_that_is_no_count_is_an_error(bound: str) -> None:
    with refuses("flow-value", match="maxIterations"):
        words().count_bound(node(maxIterations=bound), 0, HERE)


@pytest.mark.parametrize("language", ["javascript", "jsonata"])
@pytest.mark.parametrize("over", ["state.list", "${state.list}"])
def test_a_map_goes_over_a_list(language: str, over: str) -> None:
    assert words(language).list_items(node(over=over), 0, HERE) == [1, 2]


def test_a_map_over_something_else_is_an_error() -> None:
    with refuses("flow-value", match="no list"):
        words().list_items(node(over="state.name"), 0, HERE)


PLANS = as_flow(
    {
        "type": "loop",
        "over": "state.plans",
        "as": "plan",
        "nodes": [
            {"type": "agent", "agentId": "a"},
            {
                "type": "loop",
                "over": "plan.parts",
                "as": "part",
                "nodes": [{"type": "agent", "agentId": "a"}],
            },
        ],
    }
)
PLAN_STATE = {"plans": [{"parts": ["a"]}, {"parts": ["b", "c"]}], "plan": "of an agent"}


@pytest.mark.parametrize(
    ("at", "told"),
    [
        ("0.1/0", [["a"], 0, None]),
        ("0.2/0", [["b", "c"], 1, None]),
        ("0.2/1.2/0", [["b", "c"], 1, "c"]),
    ],
)
def test_a_loop_gives_its_item_to_what_is_in_it(at: str, told: list[Any]) -> None:
    here = parse_position(at)
    words = FlowWords("javascript", PLAN_STATE, "", 0, flow=PLANS)
    plan, number = (words.fill(each, 0, here) for each in ("${plan.parts}", "${state.planIndex}"))
    assert [plan, number, words.inside(here).items.get("part")] == told
    assert words.fill("${state.plan.parts}", 0, here) == plan


def test_an_item_that_is_gone_is_no_item_and_no_older_value() -> None:
    state = {"plans": [], "plan": "of an agent"}
    inside = FlowWords("javascript", state, "", 0, flow=PLANS).inside(parse_position("0.2/0"))
    assert not inside.holds("state.plan", 0)


@pytest.mark.parametrize(
    ("value", "told"), [(None, "null"), ({"on": True}, '{"on": true}'), ("x" * 99, f'"{"x" * 59}')]
)
def test_a_value_that_is_no_list_is_told_as_json(value: Any, told: str) -> None:
    here = FlowWords("javascript", {"plans": value}, "", 0, flow=PLANS)
    with refuses("flow-value") as raised:
        here.count_bound(PLANS.nodes["0"], 0, HERE)
    assert raised.value.message == f"over of {PLANS.nodes['0'].label} (0) is {told}, and no list"


@pytest.mark.parametrize("over", ["state.list[$ > 1]", "state.list[$ > 9]"])
def test_a_jsonata_result_that_is_no_list_is_told_with_a_remedy(over: str) -> None:
    """JSONata gives one value as itself, and none as nothing."""
    with refuses("flow-value", match="no list; brackets around the expression make it one"):
        words("jsonata").list_items(node(over=over), 0, HERE)
    remedy = words("jsonata").list_items(node(over=f"[{over}]"), 0, HERE)
    assert remedy == [each for each in STATE["list"] if each > int(over[-2])]


def test_a_loop_has_as_many_passes_as_items_and_at_most_a_thousand() -> None:
    loop = PLANS.nodes["0"]

    def count(items: list[int]) -> int:
        return FlowWords("javascript", {"plans": items}, "", 0, flow=PLANS).count_bound(
            loop, 0, HERE
        )

    assert (count([]), count([0] * 3), count([0] * 1000)) == (0, 3, 1000)
    with refuses("flow-value", match="has 1,001 items, of at most 1,000"):
        count([0] * 1001)
    with refuses("flow-value", match="has 1,001 items, of at most 1,000"):
        FlowWords("javascript", {"list": [0] * 1001}, "", 0).list_items(
            FlowNode("0", "map", {"over": "state.list"}), 0, HERE
        )


@pytest.mark.parametrize(
    ("field", "template", "value"),
    [
        ("retries", "${state.n - 1}", 2),
        ("retries", "${state.none}", None),
        ("retries", "${state.n / 2}", "no whole number"),
        ("retries", "${-1}", "at least 0 is due"),
        ("retries", "${state.name}", "no whole number"),
        ("timeout", "${state.n * 1000}", 3000),
        ("timeout", "${state.none}", None),
        ("timeout", "${0}", "no number of milliseconds above 0"),
        ("timeout", "${state.list}", "no number of milliseconds"),
    ],
)
def test_numbers_that_the_state_gives(field: str, template: str, value: Any) -> None:
    named = node(**{field: template})

    def read() -> Any:
        if field == "retries":
            return words().count_retries(named, 0, HERE)
        return words().find_timeout_ms(named, template, 0, HERE)

    if isinstance(value, str):
        with refuses("flow-value", match=f"{field} of loop .0. is .*{value}"):
            read()
    else:
        assert read() == value


def test_a_loop_over_many_items_may_pass_them_all_in_one_move() -> None:
    """The list is read once; each time anew it would take more work than a move may."""
    maybe: Tree = {"type": "conditional", "condition": "plan.due", "nodes": [AGENT]}
    flow = as_flow(
        {"type": "loop", "over": "state.plans.filter(x => x)", "as": "plan", "nodes": [maybe]}
    )
    plans = [{"due": False, "number": number} for number in range(1000)]

    move = next_move(flow, None, FlowWords("javascript", {"plans": plans}, "", 0, flow=flow))

    assert move.kind == "end"


def test_a_move_whose_conditions_take_too_much_work_is_an_error() -> None:
    dear = "(state.long + '.').length < 1"
    maybe: Tree = {"type": "conditional", "condition": dear, "nodes": [AGENT]}
    flow = as_flow({"type": "loop", "maxIterations": 10**6, "nodes": [maybe]})
    asked = FlowWords("javascript", {"long": "a" * 1_000_000}, "", 0, flow=flow)

    with pytest.raises(Refused, match="too much work together"):
        next_move(flow, None, asked)
