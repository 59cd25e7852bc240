"""Whether a thread can go on in another flow."""

import pytest
from flow_trees import Tree, as_flow

from uwf_git.engine.flow_change import find_lost_place
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread import Split, ThreadState, Waiting

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
