import random

import pytest
from engine.picture.subjects import SEED_FLOWS, draw_graph, every_kind, known_subjects, read_subject

from uwf_git.engine.picture.draw import make_plan, render_outline
from uwf_git.engine.picture.labels import columns
from uwf_git.engine.picture.plan import (
    Block,
    FlowPlan,
    GraphPlan,
    Progress,
    Subject,
    mark_roles,
    order_roles,
    plan_graph,
)
from uwf_git.model.flow import Flow
from uwf_git.model.thread import STATUSES
from uwf_git.model.workflow import END, START, Graph, Transition


def blocks_of(subject: Subject) -> dict[str, Block]:
    """Return all blocks by their places."""
    plan = make_plan(subject)
    assert isinstance(plan, FlowPlan)
    found: dict[str, Block] = {}
    left = list(plan.blocks)
    while left:
        block = left.pop()
        found[block.place] = block
        left += [inner for branch in block.branches for inner in branch.blocks]
    return found


def test_every_node_has_its_block() -> None:
    for subject in [every_kind(), *map(read_subject, SEED_FLOWS)]:
        assert isinstance(subject.moves, Flow)
        assert {place: block.kind for place, block in blocks_of(subject).items()} == {
            place: node.kind for place, node in subject.moves.nodes.items()
        }


def graph_of(**ways: str) -> Graph:
    """Return a graph without conditions: ``a="b c"`` leads from a to b, else to c."""
    names = {"start": START, "end": END}
    return {
        names.get(source, source): tuple(
            Transition(names.get(target, target), None) for target in targets.split()
        )
        for source, targets in ways.items()
    }


def test_an_order_with_fewer_ways_back_is_taken() -> None:
    graph = graph_of(start="a", c="end", b="c", a="b")
    assert order_roles(graph, ["c", "b", "a"]) == ["a", "b", "c"]
    stations = plan_graph(Subject("x", "", {}, graph), graph).stations
    assert [station.name for station in stations] == ["start", "a", "b", "c", "end"]


RAN = {"writer": 2, "checker": 1}


@pytest.mark.parametrize("status", STATUSES)
def test_each_status_has_words(status: str) -> None:
    for turn in (None, "writer", END):
        for mark in mark_roles(Progress(status, RAN, turn, attempts=2)).values():
            assert mark.badge[0] in "✓▶?✗‖"
            assert mark.words


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    graphs = [draw_graph(random.Random(seed)) for seed in range(10)]
    for subject in [*known_subjects(), *graphs]:
        plan = make_plan(subject)
        # Deep inside containers 30 columns are left in any case.
        guides = 0 if isinstance(plan, GraphPlan) else 24
        for line in render_outline(plan, width).splitlines():
            assert columns(line) <= max(width, 30 + guides), line
