"""Whether a thread can go on in another flow."""

from itertools import islice

import pytest
from flow_trees import Tree, as_flow, interpret, trees
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.flow_move import find_lost_place, find_renamed_place, has_left
from uwf_git.model.flow import HOLDING, Flow, FlowNode, parse_position
from uwf_git.model.names import NodeHash
from uwf_git.model.thread import Split, ThreadState, Try, Waiting

AGENT: Tree = {"type": "agent", "agentId": "a"}


def loop(*nodes: Tree, **fields: object) -> Tree:
    return {"type": "loop", **fields, "nodes": list(nodes)}


def sequence(*nodes: Tree) -> Tree:
    return {"type": "sequential", "nodes": list(nodes)}


def at(place: str | None) -> ThreadState:
    return ThreadState(NodeHash("3FXJM7QS2A9PB"), {}, 0, at=place)


OLD = as_flow(sequence(AGENT, loop(AGENT, AGENT, condition="x")))


@pytest.mark.parametrize(
    ("new", "place", "lost"),
    [
        (sequence(AGENT, loop(AGENT, AGENT, condition="y", maxIterations=2)), "0/1.3/0", None),
        (sequence(AGENT, loop(AGENT), AGENT), "0/1.3/0", None),
        (sequence(AGENT, loop(AGENT)), "0/1.3/1", "0/1.3/1"),
        (sequence(AGENT, sequence(AGENT, AGENT)), "0/1.3/0", "0/1.3/0"),
        (sequence(AGENT, sequence(AGENT, AGENT)), "0/0", None),
        (loop(AGENT), "0/0", "0/0"),
        (AGENT, None, None),
    ],
)
def test_the_way_to_the_place_stays(new: Tree, place: str | None, lost: str | None) -> None:
    assert find_lost_place(OLD, as_flow(new), at(place)) == lost


def agent(name: str, **fields: object) -> Tree:
    return {"type": "agent", "agentId": name, **fields}


def both(name: str) -> Tree:
    return {"type": "parallel", "name": name, "nodes": [AGENT, AGENT]}


THREE = sequence(
    agent("one"), agent("two", verifiedBy={"agentId": "judge", "when": "true"}), both("checks")
)


@pytest.mark.parametrize(
    ("new", "present", "lost"),
    [
        (THREE, at("0/1"), None),
        (THREE, at(None), None),
        # Another node before it moves all others.
        (sequence(agent("zero"), agent("one"), agent("two")), at("0/1"), "0/1"),
        (sequence(agent("zero"), agent("two"), both("more")), at("0/1"), None),
        (sequence(agent("zero"), agent("two"), both("more")), at("0/2"), "0/2"),
        (THREE, at("0/0")._replace(waiting=Waiting("judge", at="0/1")), None),
        (THREE, at("0/0")._replace(waiting=Waiting("one", at="0/1")), "0/1"),
        (THREE, at("0/0")._replace(tried=Try("0/1", 1, is_verdict=True)), None),
        (
            sequence(agent("one"), agent("too")),
            at("0/0")._replace(tried=Try("0/1", 1, is_verdict=True)),
            "0/1",
        ),
    ],
)
def test_what_has_finished_is_the_same_there(
    new: Tree, present: ThreadState, lost: str | None
) -> None:
    assert find_renamed_place(as_flow(THREE), as_flow(new), present) == lost


NESTED = sequence(
    loop(AGENT, both("inner"), sequence(AGENT)),
    {"type": "conditional", "condition": "x", "nodes": [AGENT], "else": [AGENT, AGENT]},
    both("checks"),
)


def test_a_container_is_left_when_nothing_leads_to_its_end() -> None:
    for container, present, is_left in [
        ("0", at(None), False),
        ("0/2", at(None), False),
        # The end of what is around it comes, of what is behind it does not.
        ("0", at("0/2"), False),
        ("0", at("0"), True),
        ("0", at("1"), True),
        ("0/0", at("0/0.2/0"), False),
        ("0/0", at("0/0"), True),
        ("0/0", at("0/1/0"), True),
        ("0/1", at("0/0.2/0"), False),
        ("0/1", at("0/1/0"), False),
        ("0/1", at("0/1/e0"), True),
        ("0/2", at("0/2"), True),
        # A pass more leads there again.
        ("0/0/1", at("0/0.1/2/0"), False),
        ("0/0/1", at("0/1/0"), True),
        ("0/0/1", at("0/0.1/0")._replace(split=Split("0/0.1/1", ())), False),
        ("0/2", at("0/1/0")._replace(split=Split("0/2", ())), True),
        ("0", at("0/1/0")._replace(split=Split("0/2", ())), False),
    ]:
        assert has_left(as_flow(NESTED, AGENT), container, present) == is_left


@given(trees, st.data())
def test_no_run_comes_to_a_node_that_is_added_where_it_has_left(
    root: Tree, data: st.DataObject
) -> None:
    old = as_flow(root)
    held = [place for place, node in old.nodes.items() if node.kind in HOLDING]
    if not held:
        return
    container = data.draw(st.sampled_from(held))
    added = f"{container}/{len(old.children(container))}"
    new = Flow({**old.nodes, added: FlowNode(added, "agent", {"agentId": "added"})}, old.language)
    chance = data.draw(st.randoms(use_true_random=False))
    visits = list(
        islice(
            interpret(new, lambda *_: chance.random() < 0.5, lambda *_: chance.randrange(1, 3)), 50
        )
    )
    for number, visited in enumerate(visits):
        if parse_position(visited).place == added:
            continue
        left = has_left(old, container, at(visited))
        assert not left or added not in [parse_position(v).place for v in visits[number + 1 :]]


def test_a_graph_has_no_places() -> None:
    assert find_lost_place(OLD, None, at("0/0")) == "0/0"
    assert find_lost_place(OLD, None, at(None)) is None
    assert find_lost_place(None, OLD, at(None)) is None


def test_where_it_waits_and_has_split_counts_too() -> None:
    new = as_flow(sequence(AGENT))

    waiting = at("0/0")._replace(waiting=Waiting("a", at="0/1.1/0"))
    split = at("0/0")._replace(split=Split("0/1", ()))

    assert find_lost_place(OLD, new, waiting) == "0/1.1/0"
    assert find_lost_place(OLD, new, split) == "0/1"
    assert find_lost_place(OLD, OLD, split) is None
    assert find_lost_place(OLD, OLD, at("no place")) == "no place"
