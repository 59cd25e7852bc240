"""Where a thread of a flow goes next: one pure function of its position and what conditions say.

The cost depends on the flow alone, never on the steps before. Rules: FORMAT.md, "Positions".
"""

from typing import Literal, NamedTuple, Protocol

from uwf_git.errors import Refused
from uwf_git.model.flow import SPLITTING, Flow, FlowNode
from uwf_git.model.position import Position, fits, parse_position

MOST_NODES = 10_000
"""How many nodes one move may pass: loops whose conditions reach no agent must end."""

_START = parse_position("0")


class LoopExhausted(Refused):
    """A loop with ``onExhausted: stop`` has made its last pass, and its condition still holds."""

    code = "loop-exhausted"

    def __init__(self, node: FlowNode, at: Position, passes: int) -> None:
        super().__init__(
            f"loop {node.label} at {at} made {passes} passes and its condition still holds",
            position=str(at),
            passes=passes,
        )


class PlaceGone(Refused):
    """The flow has no such place: another one took its place meanwhile."""

    code = "no-such-place"

    def __init__(self, at: Position) -> None:
        super().__init__(
            f"the flow has no place {at}, where the thread stands",
            hint="`uwf thread amend ID --workflow FILE` gives it a workflow that has it",
            position=str(at),
        )


class Asker(Protocol):
    """Evaluates what a move depends on; its errors are passed on."""

    def is_true(self, node: FlowNode, iteration: int, at: Position) -> bool:
        """Return whether the condition of *node*, which stands at *at*, holds.

        *iteration* is the number of passes done of the innermost loop around, or of *node* itself
        if it is the loop: *at* then has that pass.
        """

    def count_bound(self, node: FlowNode, iteration: int, at: Position) -> int:
        """Return the most passes of the loop *node*, which stands at *at*.

        Its ``maxIterations`` is a template, or it has a pass for each item of its ``over``.
        """


class Move(NamedTuple):
    """The next thing that a thread does."""

    kind: Literal["agent", "split", "end"]
    at: Position | None
    """Where; None at the end."""

    node: FlowNode | None


_END = Move("end", None, None)


def next_move(
    flow: Flow, at: Position | None, ask: Asker, *, entry: Position | None = None
) -> Move:
    """Return what comes after *at*, the place last finished; None is before the first step.

    *entry* is where the thread begins: a branch of a parallel (its place), or an item of a map (the
    map's place in that item); None for all others.

    Raises:
        LoopExhausted: a loop may not be left.
        Refused: there is no agent on the way.
        PlaceGone: a thread that began at *entry* cannot stand at *at*.
    """
    if at is not None and not fits(flow, at, entry=entry):
        raise PlaceGone(at)
    walk = _Walk(flow, ask, entry)
    step = walk.begin() if at is None else walk.leave(at)
    for _count in range(MOST_NODES):
        if step is None:
            return _END
        entering, position = step
        if not entering:
            step = walk.leave(position)
            continue
        node = flow.nodes[position.place]
        if node.kind == "agent":
            return Move("agent", position, node)
        if node.kind in SPLITTING:
            return Move("split", position, node)
        step = walk.enter(position, node)
    raise Refused(
        f"the flow reached no agent after {MOST_NODES:,} nodes; it goes round at {position}",
        code="flow-goes-round",
        hint="a loop needs an agent inside that always runs, or a lower maxIterations",
        position=str(position),
    )


def count_passes(flow: Flow, at: Position) -> int:
    """Return ``iteration`` at *at*: the passes done of the innermost loop around it."""
    position: Position | None = at
    while position is not None and len(position.parts) > 1:
        around = Position(position.parts[:-1])
        if flow.nodes[around.place].kind == "loop":
            return (around.turn or 1) - 1
        position = around
    return 0


def find_given_up(flow: Flow, at: Position, *, entry: Position | None = None) -> Position | None:
    """Return what is given up if the agent at *at* fails for good.

    It is the nearest place upward with ``onError: continue``, the agent itself first; None: the
    thread fails. A place at which a thread of its own was split off decides there, not here.
    """
    inside = len(entry.parts) if entry is not None else 0
    position: Position | None = at
    while position is not None and len(position.parts) > inside - _is_branch(entry):
        if flow.nodes[position.place].fields.get("onError") == "continue":
            return position
        position = position.up
    return None


def _is_branch(entry: Position | None) -> int:
    """Return 1 if the place of *entry* itself belongs to its child: a branch, not an item."""
    return 1 if entry is not None and entry.turn is None else 0


Step = tuple[bool, Position] | None
"""Enter (True) or leave (False) a position; None is the end."""


class _Walk:
    def __init__(self, flow: Flow, ask: Asker, entry: Position | None) -> None:
        self._flow = flow
        self._ask = ask
        self._entry = entry

    def begin(self) -> Step:
        entry = self._entry or _START
        return (True, entry) if entry.turn is None else (True, entry.child(0))

    def enter(self, at: Position, node: FlowNode) -> Step:
        passes = count_passes(self._flow, at)
        if node.kind == "loop":
            if node.has_items and not self._ask.count_bound(node, passes, at):
                return (False, at)
            return (True, at.in_turn(1).child(0))
        if node.kind == "sequential":
            return (True, at.child(0))
        if self._ask.is_true(node, passes, at):
            return (True, at.child(0))
        if self._flow.has_else(node.place):
            return (True, at.child(0, is_else=True))
        return (False, at)

    def leave(self, at: Position) -> Step:
        if at == self._entry:
            return None
        if self._flow.next_sibling(at.place) is not None:
            return (True, at.next_sibling())
        if len(at.parts) == 1:
            return None
        around = Position(at.parts[:-1])
        if around == self._entry:
            # The list of an item of a map.
            return None
        node = self._flow.nodes[around.place]
        if node.kind == "loop":
            return self._turn(node, around)
        return (False, around)

    def _turn(self, node: FlowNode, around: Position) -> Step:
        done = around.turn or 1
        bound = node.literal_bound
        if bound is None:
            # A list is read as the loop is entered, with the passes of what is around it.
            passes = count_passes(self._flow, around.without_turn()) if node.has_items else done
            bound = self._ask.count_bound(node, passes, around)
        has_condition = "condition" in node.fields
        if done < bound:
            if not has_condition or self._ask.is_true(node, done, around):
                return (True, around.in_turn(done + 1).child(0))
        elif (
            has_condition
            and node.fields.get("onExhausted") == "stop"
            and self._ask.is_true(node, done, around)
        ):
            raise LoopExhausted(node, around.without_turn(), done)
        return (False, around.without_turn())
