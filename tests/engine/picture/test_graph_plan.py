from engine.picture.subjects import SHIPPED, read_subject

from uwf_git.engine.picture.draw import make_plan
from uwf_git.engine.picture.plan import GraphPlan, Subject, order_roles, plan_graph
from uwf_git.model.flow import Flow
from uwf_git.model.workflow import END, START, Graph, Transition


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
