import random

import pytest
from engine.picture.subjects import (
    SEED_FLOWS,
    SHIPPED,
    draw_graph,
    every_kind,
    known_subjects,
    read_subject,
)

from uwf_git.engine.picture.draw import make_plan, render_outline
from uwf_git.engine.picture.labels import columns
from uwf_git.engine.picture.plan import (
    Block,
    FlowPlan,
    GraphPlan,
    Mark,
    Progress,
    Subject,
    mark_places,
    mark_roles,
    mark_split,
    order_roles,
    plan_flow,
    plan_graph,
)
from uwf_git.model.builtin import reference
from uwf_git.model.flow import Flow, FlowNode, parse_position
from uwf_git.model.names import NodeHash
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
        blocks = blocks_of(subject)
        assert {place: block.kind for place, block in blocks.items()} == {
            place: node.kind for place, node in subject.moves.nodes.items()
        }


def test_headings_say_what_a_container_does() -> None:
    blocks = blocks_of(every_kind())
    assert {place: (each.name, each.note) for place, each in blocks.items() if each.branches} == {
        "0": ("sequence", ""),
        "0/0": ("map “each feature” · the first wins", "for each feature of state.features"),
        "0/1": ("if", "state.risk === 'high'"),
        "0/2": ("if “maybe”", "state.late"),
        "0/3": ("parallel · 1 may fail · goes on after an error", ""),
        "0/3/1": ("loop · at most 3", ""),
    }


def test_agents_say_what_they_give() -> None:
    blocks = blocks_of(every_kind())
    assert (blocks["0/0/1"].name, blocks["0/0/1"].note) == ("checker", "→ done")
    assert (blocks["0/2/0"].name, blocks["0/2/0"].note) == ("发布", "publisher · 0.5 s")
    assert (blocks["0/3/2"].name, blocks["0/3/2"].note) == ("three", "retries 2")


def test_a_workflow_in_a_flow_is_named() -> None:
    used = {"use": "review", "id": "second look", "workflow": reference(NodeHash("0" * 13))}
    flow = Flow({"0": FlowNode("0", "workflow", used)})
    plan = plan_flow(Subject("x", "", {}, flow), flow)
    assert (plan.blocks[0].name, plan.blocks[0].note) == ("second look", "workflow review")


def test_branches_run_beside_each_other_or_one_of_them() -> None:
    blocks = blocks_of(every_kind())
    assert [len(branch.blocks) for branch in blocks["0/3"].branches] == [1, 1, 1]
    assert [(b.label, len(b.blocks)) for b in blocks["0/1"].branches] == [("then", 2), ("else", 1)]
    assert [(b.label, len(b.blocks)) for b in blocks["0/2"].branches] == [("then", 1), ("else", 0)]


def graph_of(**ways: str) -> Graph:
    """Return a graph without conditions: ``a="b c"`` leads from a to b, else to c."""
    names = {"start": START, "end": END}
    return {
        names.get(source, source): tuple(
            Transition(names.get(target, target), None) for target in targets.split()
        )
        for source, targets in ways.items()
    }


def planned(graph: Graph) -> GraphPlan:
    return plan_graph(Subject("x", "", {}, graph), graph)


def names_of(plan: GraphPlan) -> list[str]:
    return [station.name for station in plan.stations]


def test_the_authors_order_is_kept() -> None:
    # Neither order has a way back; depth first, c would come before b.
    plan = planned(graph_of(start="a", a="b c", b="d", c="d", d="end"))
    assert names_of(plan) == ["start", "a", "b", "c", "d", "end"]


def test_an_order_with_fewer_ways_back_is_taken() -> None:
    graph = graph_of(start="a", c="end", b="c", a="b")
    assert order_roles(graph, ["c", "b", "a"]) == ["a", "b", "c"]
    assert names_of(planned(graph)) == ["start", "a", "b", "c", "end"]


def test_shipped_workflows_keep_their_order() -> None:
    subjects = [read_subject(path) for path in SHIPPED]
    graphs = [each for each in subjects if not isinstance(each.moves, Flow)]
    assert len(graphs) == 5
    for subject in graphs:
        plan = make_plan(subject)
        assert isinstance(plan, GraphPlan)
        assert names_of(plan)[1:-1] == list(subject.roles)


def test_conditions_are_numbered_as_they_are_asked() -> None:
    ways = (Transition("b", "x = 1"), Transition(END, "x\n  = 2"), Transition("b", None))
    plan = planned({START: (Transition("a", None),), "a": ways, "b": (Transition(END, None),)})
    assert [(way.source, way.target, way.labels) for way in plan.ways] == [
        (0, 1, ()),
        (1, 2, ("1. x = 1", "3. otherwise")),
        (1, 3, ("2. x = 2",)),
        (2, 3, ()),
    ]


def test_roles_that_nothing_reaches_stand_before_the_end() -> None:
    plan = planned(graph_of(start="a", lost="a end", a="end"))
    assert names_of(plan) == ["start", "a", "lost", "end"]
    assert [station.is_reached for station in plan.stations] == [True, True, False, True]


RAN = {"writer": 2, "checker": 1}


@pytest.mark.parametrize(
    ("progress", "mark"),
    [
        (Progress("ready", {}, "writer"), Mark("now", "▶ next", "is next")),
        (
            Progress("ready", RAN, "writer", is_at_work=True),
            Mark("now", "▶ at work · ✓ 2", "is at work; it ran twice"),
        ),
        (
            Progress("ready", {}, "writer", attempts=1),
            Mark("failed", "▶ try 2", "is next after 1 try"),
        ),
        (
            Progress("ready", {}, "writer", attempts=1, is_at_work=True),
            Mark("now", "▶ try 2", "is at work after 1 try"),
        ),
        (Progress("waiting", {}, "writer"), Mark("waits", "? person", "waits for a person")),
        (
            Progress("waiting", {}, "writer", waits_for_limit=True),
            Mark("waits", "? limit", "waits until a limit ends"),
        ),
        (
            Progress("failed", RAN, "writer", attempts=3),
            Mark("failed", "✗ 3 tries · ✓ 2", "failed after 3 tries; it ran twice"),
        ),
        (
            Progress("paused", {}, "writer"),
            Mark("paused", "‖ paused", "is next, and the thread is paused"),
        ),
        (
            Progress("killed", RAN, last="writer"),
            Mark("stopped", "✗ killed · ✓ 2", "was here when the thread was killed; it ran twice"),
        ),
    ],
)
def test_the_place_of_a_thread_says_how_it_stands(progress: Progress, mark: Mark) -> None:
    assert mark_roles(progress)["writer"] == mark


def test_roles_say_how_often_they_ran() -> None:
    marks = mark_roles(Progress("completed", {"a": 1, "b": 2, "c": 3}))
    assert [(marks[role].badge, marks[role].words) for role in "abc"] == [
        ("✓ 1", "ran once"),
        ("✓ 2", "ran twice"),
        ("✓ 3", "ran 3 times"),
    ]
    assert marks[END] == Mark("done", "✓ completed", "the thread is completed")


def test_an_end_that_is_still_to_be_recorded_is_next() -> None:
    assert mark_roles(Progress("ready", RAN, END, last="checker"))[END].badge == "▶ next"


def test_a_thread_killed_before_its_first_step_stands_at_the_start() -> None:
    assert mark_roles(Progress("killed", {}))[START].state == "stopped"


def test_nothing_is_said_of_a_turn_that_nobody_knows() -> None:
    assert mark_roles(Progress("ready", {})) == {}


@pytest.mark.parametrize("status", STATUSES)
def test_each_status_has_words(status: str) -> None:
    for turn in (None, "writer", END):
        for mark in mark_roles(Progress(status, RAN, turn, attempts=2)).values():
            assert mark.badge[0] in "✓▶?✗‖"
            assert mark.words


def flow_of(name: str) -> Flow:
    moves = read_subject(next(path for path in SEED_FLOWS if path.stem == name)).moves
    assert isinstance(moves, Flow)
    return moves


def test_a_position_marks_its_place_and_the_passes_of_the_loops_around() -> None:
    progress = Progress("ready", {"planner": 1, "coder": 6}, "reviewer")
    marks = mark_places(flow_of("level-4"), progress, parse_position("0/1.3/1.2/0/1"))
    assert {place: mark.badge for place, mark in marks.items()} == {
        "0/0": "✓ 1",
        "0/1": "▶ pass 3",
        "0/1/1": "▶ pass 2",
        "0/1/1/0/0": "✓ 6",
        "0/1/1/0/1": "▶ next",
    }


def test_a_completed_flow_marks_its_end() -> None:
    marks = mark_places(flow_of("level-1"), Progress("completed", {"worker": 5}), None)
    assert {place: mark.badge for place, mark in marks.items()} == {
        "0/0": "✓ 5",
        END: "✓ completed",
    }


def test_steps_of_a_role_at_several_places_are_counted_at_none() -> None:
    flow = flow_of("level-2")
    nodes = {
        place: node._replace(fields={**node.fields, "agentId": "x"})
        for place, node in flow.nodes.items()
    }
    assert mark_places(Flow(nodes), Progress("ready", {"x": 2}), None) == {}


def test_a_branch_marks_only_what_is_in_it() -> None:
    flow = flow_of("coder-review-loop")
    progress = Progress("failed", {"coder": 3, "reviewer": 1}, "reviewer", attempts=2)
    marks = mark_places(flow, progress, parse_position("0.3/0/1/0"), within="0/0/1/0")
    assert {place: mark.badge for place, mark in marks.items()} == {"0/0/1/0": "✗ 2 tries · ✓ 1"}
    done = mark_places(flow, Progress("completed", {"tester": 1}), None, within="0/0/1/1")
    assert {place: mark.badge for place, mark in done.items()} == {"0/0/1/1": "✓ 1"}


def test_branches_are_counted_where_several_are_at_one_place() -> None:
    done, now = Mark("done", "✓ 1", "ran once"), Mark("now", "▶ next", "is next")
    marks = mark_split("0", 1, [{"0/0": done, "0/1": now}, {"0/0": now}, {"0/0": now}])
    assert marks == {
        "0": Mark("now", "▶ 1 of 3 ended", "has split, and 1 of 3 branches have ended"),
        "0/0": Mark("now", "▶ 2 · ✓ 1", "2 of its branches: is next; 1 of its branches: ran once"),
        "0/1": now,
    }


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    graphs = [draw_graph(random.Random(seed)) for seed in range(10)]
    for subject in [*known_subjects(), *graphs]:
        plan = make_plan(subject)
        # Deep inside containers 30 columns are left in any case.
        guides = 0 if isinstance(plan, GraphPlan) else 24
        for line in render_outline(plan, width).splitlines():
            assert columns(line) <= max(width, 30 + guides), line


def test_every_block_is_there_in_one_order() -> None:
    plan = make_plan(every_kind())
    assert isinstance(plan, FlowPlan)
    shown = render_outline(plan, 80)
    places = [
        shown.index(f"─ {name}") for name in ("map", "coder", "checker", "if", "ask", "publish")
    ]
    assert places == sorted(places)
    assert [line.lstrip(" │") for line in shown.splitlines() if "═" in line] == [
        "╠═ one",
        "╠═ loop · at most 3",
        "╚═ three  retries 2",
    ]


def test_every_way_says_where_it_leads() -> None:
    ways = (Transition("b", "x"), Transition("a", "y"), Transition(END, None))
    graph = {START: (Transition("a", None),), "a": ways, "b": (Transition("a", None),)}
    assert (
        render_outline(make_plan(Subject("x", "", {}, graph)), 80)
        == """\
x

start
│
a
├─ 1. x ↓ b
├─ 2. y ↺ a
├─ 3. otherwise → end
│
b
└─ ↺ a

end
"""
    )
