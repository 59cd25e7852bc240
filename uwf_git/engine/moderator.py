"""The moderator: decide the next role.

The answer depends on the arguments alone, so the same history gives the same next role on every
machine. Rules:
 1. Transitions are tried in the order in which they were written.
 2. A transition without a condition always holds.
 3. The first that holds wins; those after it are not tried.
 4. If none holds, that is an error, never an end.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from uwf_git.engine.lazy_context import LazyContext
from uwf_git.engine.lazy_list import map_list
from uwf_git.errors import Refused
from uwf_git.model.transition import Graph, Transition


class NoTransition(Refused):
    """No condition out of a position holds."""

    code = "no-transition"

    def __init__(self, position: str, asked: tuple[Transition, ...]) -> None:
        super().__init__(
            f"no transition from {position} holds",
            hint="give its last transition `condition: null` in the workflow's file",
            position=position,
            asked=[{"to": each.to, "condition": each.condition} for each in asked],
        )


class StepSummary(NamedTuple):
    """What a condition sees of an earlier step."""

    role: str
    meta: Mapping[str, Any]


class Position(NamedTuple):
    """Where a thread stands: the step just done, and the thread's state.

    Before the first step: ``START``, no meta, depth 0.
    """

    role: str
    """The role whose step was just done, or ``START``."""

    meta: Mapping[str, Any]
    """That step's meta."""

    depth: int
    """How many steps are done."""

    state: Mapping[str, Any]
    prompt: str
    iteration: int
    start_time_ms: int


def next_role(graph: Graph, position: str, holds: Callable[[str], bool]) -> str:
    """Return the role that follows *position*, or ``END``.

    *holds* evaluates one condition; what it raises is passed on, since a condition that cannot be
    evaluated is not false.

    Raises:
        Refused: *position* is not in *graph*.
        NoTransition: no transition out of *position* holds.
    """
    if position not in graph:
        raise Refused(
            f"the moderator has no transitions from {position}",
            code="unknown-position",
            hint=f"it knows {', '.join(graph) or 'no position at all'}; "
            f"add `from: {position}` to the workflow's file",
            position=position,
            known=list(graph),
        )
    ways = graph[position]
    for way in ways:
        if way.condition is None or holds(way.condition):
            return way.to
    raise NoTransition(position, ways)


def build_context(
    position: Position, load_history: Callable[[], Sequence[StepSummary]]
) -> LazyContext:
    """Return what a condition sees at *position*.

    *load_history* returns the steps before the one just done, oldest first: at depth 3, two
    (seed 000's example). It is called only if a condition reads ``history``, and never where there
    can be no earlier step. Of a ``LazyList`` only those are read that the condition looks at.
    """

    def summaries() -> Sequence[dict[str, Any]]:
        if position.depth <= 1:
            return []
        return map_list(load_history(), lambda step: {"role": step.role, "meta": step.meta})

    known = {
        "role": position.role,
        "meta": position.meta,
        "depth": position.depth,
        "state": position.state,
        "prompt": position.prompt,
        "iteration": position.iteration,
        "startTime": position.start_time_ms,
    }
    return LazyContext(known, summaries)
