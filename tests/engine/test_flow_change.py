"""Whether a thread can go on in another flow."""

import pytest
from flow_trees import Tree, as_flow

from uwf_git.engine.flow_change import find_lost_place, find_renamed_place
from uwf_git.model.node_hash import NodeHash
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
