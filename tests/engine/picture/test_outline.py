import random

import pytest
from engine.picture.subjects import draw_graph, every_kind, known_subjects

from uwf_git.engine.picture.draw import make_plan, render_outline
from uwf_git.engine.picture.labels import columns
from uwf_git.engine.picture.plan import FlowPlan, GraphPlan, Subject
from uwf_git.model.workflow import END, START, Transition


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
