"""The plan of a graph: in which order its roles are drawn, and which transitions are one way."""

from collections.abc import Mapping, Sequence

from uwf_git.engine.picture.order import find_reached, order_roles
from uwf_git.engine.picture.plan import (
    GraphPlan,
    Marks,
    Station,
    Subject,
    Way,
    clean,
    clean_mark,
    name_subject,
)
from uwf_git.model.transition import END, START, Graph, Transition

END_NAMES: Mapping[str, str] = {START: "start", END: "end"}


def plan_graph(subject: Subject, graph: Graph) -> GraphPlan:
    """Return the plan of *graph*, the moves of *subject*."""
    marks: Marks = {} if subject.thread is None else subject.thread.marks
    reached = find_reached(graph)
    targets = [way.to for ways in graph.values() for way in ways]
    written = [
        role
        for role in dict.fromkeys([*graph, *targets, *sorted(subject.roles)])
        if role not in END_NAMES
    ]
    order = order_roles(graph, [role for role in written if role in reached])
    order += [role for role in written if role not in reached]
    names = [START, *order, END]
    stations = tuple(
        Station(
            name=END_NAMES.get(name) or clean(name),
            note=clean(subject.roles.get(name, "")),
            mark=clean_mark(marks.get(name)),
            is_end=name in END_NAMES,
            is_reached=name in reached or name == END,
        )
        for name in names
    )
    numbers = {name: number for number, name in enumerate(names)}
    ways = tuple(way for name in names for way in _ways(graph.get(name, ()), name, numbers))
    return GraphPlan(name_subject(subject), clean(subject.description), stations, ways)


def _ways(transitions: Sequence[Transition], source: str, numbers: Mapping[str, int]) -> list[Way]:
    """Return the ways from *source*: one for each target, in the order of their first labels."""
    labels: dict[str, list[str]] = {}
    alone = len(transitions) == 1
    for number, each in enumerate(transitions, 1):
        told = labels.setdefault(each.to, [])
        if each.condition is not None:
            told.append(f"{number}. {clean(each.condition)}")
        elif not alone:
            told.append(f"{number}. otherwise")
    return [Way(numbers[source], numbers[target], tuple(told)) for target, told in labels.items()]
