import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flow_trees import as_flow, order
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases

from uwf_git.model.flow import (
    Flow,
    Part,
    Position,
    fits,
    level,
    parent,
    parse_flow,
    parse_position,
    read_table,
)

FLOWS = Path(__file__).parent / "made_up" / "flows.json"


AGENT = {"type": "agent", "agentId": "coder"}
TABLE: dict[str, Any] = {
    "0": {"type": "sequential"},
    "0/0": {"type": "loop", "maxIterations": 3},
    "0/0/0": AGENT,
    "0/1": {"type": "conditional", "condition": "x"},
    "0/1/0": AGENT,
    "0/1/1": {"type": "conditional", "condition": "y"},
    "0/1/1/0": AGENT,
    "0/1/e0": {"type": "conditional", "condition": "z"},
    "0/1/e0/0": AGENT,
    "1": AGENT,
}


def test_the_table_tells_what_lies_where() -> None:
    flow = parse_flow({"nodes": TABLE})
    assert flow.language == "javascript"
    assert flow.children("0") == ["0/0", "0/1"]
    assert flow.children("0/1") == ["0/1/0", "0/1/1"]
    assert flow.children("0/1", of_else=True) == ["0/1/e0"]
    assert (flow.has_else("0/1"), flow.has_else("0/1/1")) == (True, False)
    assert (flow.next_sibling("0"), flow.next_sibling("0/0")) == ("1", "0/1")
    assert (flow.next_sibling("0/1/1"), flow.next_sibling("1")) == (None, None)
    assert (parent("0/1/e0"), parent("0")) == ("0/1", None)
    assert (level("0"), level("0/1/e0")) == (1, 3)
    assert flow.roles == ("coder",)


@pytest.mark.parametrize(
    "changes",
    [
        {"0": "parallel", "0/0": "agent"},
        {"0/1": "judged"},
        {"0/0": "judged", "0/1": "conditional", "0/1/0": "agent"},
        {"0/0": "judged", "0/1": "left"},
        {"0/0": "judged", "0/1": "sequential", "0/1/0": "left"},
        {"0/0": "map", "0/0/0": "judged"},
        {"0": "left loop", "0/0": "loop", "0/0/0": "judged", "0/0/1": "agent"},
    ],
)
def test_a_flow_that_may_end_with_a_verdict_or_a_join_needs_results(
    changes: dict[str, str],
) -> None:
    agent, left = {"type": "agent", "agentId": "a"}, {"onError": "continue"}
    known: dict[str, dict[str, Any]] = {"agent": agent, "left": {**agent, **left}}
    known["left loop"] = {"type": "loop", **left}
    known["left map"] = {"type": "map", **left}
    known["judged"] = {**agent, "verifiedBy": {"agentId": "judge", "when": "meta"}}

    def needs(**kinds: str) -> bool:
        table = {place: known.get(kind, {"type": kind}) for place, kind in kinds.items()}
        return Flow(read_table(table)).needs_results

    table = {"0": "loop", "0/0": "agent", "0/1": "agent", **changes}
    assert needs(**table)
    # An agent after all is the end; of an item it is not.
    assert needs(**table, **{"1": "agent"}) is (table["0/0"] == "map")
    # An item that fails is killed, and ends with no verdict.
    tolerant = {"0": "left map", "0/0": "judged", "0/1": "agent", "1": "agent"}
    assert not needs(**tolerant)


def test_a_tenth_sibling_comes_after_the_ninth() -> None:
    table = {"0": {"type": "sequential"}, **{f"0/{n}": AGENT for n in range(12)}}
    assert parse_flow({"nodes": table}).children("0")[-2:] == ["0/10", "0/11"]


parts = st.builds(
    Part, st.booleans(), st.integers(0, 10**6), st.one_of(st.none(), st.integers(0, 10**14))
)
positions = st.lists(parts, min_size=1, max_size=32).map(lambda each: Position(tuple(each)))


@given(positions)
def test_a_position_is_read_as_it_is_written(position: Position) -> None:
    assert parse_position(str(position)) == position


def test_positions_grow_and_a_container_comes_after_all_inside_it() -> None:
    texts = [
        "0.1/0",
        "0.1/1.1/0",
        "0.1/1.2/0",
        "0.1/1.10/0",
        "0.1/1",
        "0.1/2/0",
        "0.1/2/e0",
        "0.1/2",
        "0.2/0",
        "0.9/10",
        "0.10/2",
        "0",
        "1",
    ]
    read = [parse_position(text) for text in texts]
    assert sorted(random.Random(1).sample(read, len(read)), key=order) == read


INSIDE: list[Any] = [
    {"type": "parallel", "nodes": [AGENT, {"type": "loop", "nodes": [AGENT]}]},
    {"type": "map", "over": "x", "nodes": [AGENT, AGENT]},
    {"type": "sequential", "nodes": [AGENT]},
]
FLOW = as_flow({"type": "loop", "maxIterations": 3, "nodes": INSIDE})


def test_where_a_thread_may_stand() -> None:
    for position, entry, told in [
        ("0", None, True),
        ("0.2/0", None, True),
        ("0.2/2/0", None, True),
        ("0/0", None, False),  # a loop without a pass
        ("0.0/0", None, False),
        ("0.2/2.1/0", None, False),  # no loop, and a pass
        ("0.2/0/0", None, False),  # within a branch
        ("0.2/1.0/0", None, False),
        ("0.2/5", None, False),
        ("0.2/0.1", None, False),
        ("0.2/0/0", "0.2/0/0", True),
        ("0.2/0/1.4/0", "0.2/0/1", True),
        ("0.2/0/1", "0.2/0/1", True),
        ("0.2/0/0", "0.2/0/1", False),
        ("0.3/0/0", "0.2/0/0", False),
        ("0.2/1.0/1", "0.2/1.0", True),
        ("0.2/1.1/1", "0.2/1.0", False),
        ("0.2/1.0", "0.2/1.0", False),
        ("0.2/0", "0.2/0/0", False),
    ]:
        begun = None if entry is None else parse_position(entry)
        assert fits(FLOW, parse_position(position), entry=begun) is told


def test_bad_tables_and_positions(golden: Callable[[str, str], None]) -> None:
    def tell_changes(changes: dict[str, Any]) -> object:
        table = {name: node for name, node in (TABLE | changes).items() if node is not None}
        return parse_flow({"nodes": table})

    answers = {
        "changes of a table": tell_changes,
        "parse_flow": parse_flow,
        "parse_position": parse_position,
    }
    golden("model/flows.txt", tell_cases(FLOWS, answers))
    with pytest.raises(ValueError, match="1008 nodes"):
        tell_changes({str(number): AGENT for number in range(2, 1000)})
