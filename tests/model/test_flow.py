from typing import Any

import pytest

from uwf_git.model.flow import level, parent, parse_flow

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


def test_a_tenth_sibling_comes_after_the_ninth() -> None:
    table = {"0": {"type": "sequential"}, **{f"0/{n}": AGENT for n in range(12)}}
    assert parse_flow({"nodes": table}).children("0")[-2:] == ["0/10", "0/11"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"0": None}, "one has to be the root"),
        ({"0/0": None}, "0 holds nothing"),
        ({"0/3": AGENT}, "no node before 0/3"),
        ({"1/0": AGENT}, "nothing holds 1/0"),
        ({"0/0/e0": AGENT}, "has no else"),
        ({"0/2": {"type": "parallel"}}, "0/2 holds nothing"),
        ({"0/2": {"type": "agent"}}, "has no agentId"),
        ({"0/2": {"type": "workflow", "use": "w"}}, "names no workflow"),
        ({"0/02": AGENT}, "no place"),
        ({"0.1": AGENT}, "no place"),
        ({"0/2": {"type": "goto"}}, "no place"),
        ({"0/2": {}}, "no table"),
        ({str(n): AGENT for n in range(2, 1000)}, "1008 nodes"),
        ({"0/2" + "/0" * number: {"type": "sequential"} for number in range(32)}, "no place"),
    ],
)
def test_a_bad_table_is_refused(changes: dict[str, Any], message: str) -> None:
    table = {place: node for place, node in {**TABLE, **changes}.items() if node is not None}
    with pytest.raises(ValueError, match=message):
        parse_flow({"nodes": table})


@pytest.mark.parametrize("payload", [None, [], {}, {"nodes": []}, {"nodes": {"0": 1}}])
def test_what_is_no_table_is_refused(payload: Any) -> None:
    with pytest.raises(ValueError, match=r"no table|of at most|no place"):
        parse_flow(payload)
