"""Where a thread of a flow goes next, which moves are possible, and whether another flow fits."""

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple, Protocol

from uwf_git.errors import Refused
from uwf_git.model.flow import (
    SPLITTING,
    STOPS,
    Flow,
    FlowNode,
    NotAPosition,
    Part,
    Position,
    fits,
    parse_position,
)
from uwf_git.model.thread import ThreadState

# Whether a thread that stands in one flow can go on in another flow.
#
# It can if every place on its way is of the same kind there, and has the same agent or label at
# its end. Conditions, bounds and what comes later may differ: that is what a change is for.
# Rules: FORMAT.md, "What events do".


def find_renamed_place(old: Flow, new: Flow, present: ThreadState) -> str | None:
    """Return where the thread stands, waits or tries, if another node has that place in *new*.

    All nodes keep their kinds. A finished agent or container would count as what stands there now:
    a node before it would move all others, and some nodes would run again or never.
    """
    for at in (present.at, None if present.tried is None else present.tried.at):
        place = None if at is None else parse_position(at).place
        if place is not None and _name(old.nodes[place]) != _name(new.nodes[place]):
            return at
    waiting = present.waiting
    if waiting is None or waiting.at is None:
        return None
    roles = new.nodes[parse_position(waiting.at).place].roles
    return None if waiting.role in roles else waiting.at


def _name(node: FlowNode) -> str:
    return node.agent if node.kind == "agent" else node.label


def has_left(
    flow: Flow, container: str, present: ThreadState, entry: Position | None = None
) -> bool:
    """Check whether the thread never comes to a node that is added at the end of *container*.

    So it is if the container is behind the thread or has split it, and no loop leads there again;
    or if the thread, which began at *entry*, ends before. "" is the top.
    """
    if entry is not None and not f"{container}/".startswith(f"{entry.place}/"):
        return True
    if not container:
        return False
    at = present.at if present.split is None else present.split.at
    if at is None:
        return False
    new = parse_position(f"{container}/{len(flow.children(container))}").parts
    for ours, theirs in zip(parse_position(at).parts, new, strict=False):
        if (ours.is_else, ours.number) != (theirs.is_else, theirs.number):
            return (ours.is_else, ours.number) > (theirs.is_else, theirs.number)
        if ours.turn is not None:
            # A loop around both may have another pass.
            return False
    return True


def find_lost_place(
    old: Flow | None, new: Flow | None, present: ThreadState, entry: Position | None = None
) -> str | None:
    """Return where the thread stands, waits or tries, if *new* has another kind of node there.

    *entry* is where the thread began and ends, if it is or was a branch. None for *old* or *new* is
    a graph; before its first step a thread may go from a graph to a flow and back.
    """
    waiting = None if present.waiting is None else present.waiting.at
    split = None if present.split is None else present.split.at
    tried = None if present.tried is None else present.tried.at
    began = None if entry is None else str(entry)
    for at in (began, present.at, waiting, split, tried):
        if at is None or old is None:
            continue
        if new is None or not _has_way(old, new, at):
            return at
    return None


def _has_way(old: Flow, new: Flow, at: str) -> bool:
    try:
        parts = parse_position(at).parts
    except NotAPosition:
        return False
    places = (Position(parts[:count]).place for count in range(1, len(parts) + 1))
    pairs = ((old.nodes.get(place), new.nodes.get(place)) for place in places)
    return all(was and now and was.kind == now.kind for was, now in pairs)


# Where a thread of a flow goes next: one pure function of its position and what conditions say.
#
# The cost depends on the flow alone, never on the steps before. Rules: FORMAT.md, "Positions".

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


def place_gone(at: Position) -> Refused:
    """Tell that the flow has no such place: another flow took its place meanwhile."""
    return Refused(
        f"the flow has no place {at}, where the thread stands",
        code="no-such-place",
        hint="`uwf thread amend ID --workflow FILE` gives it a workflow that has it",
        position=str(at),
    )


class Asker(Protocol):
    """Evaluates what a move depends on; its errors are passed on."""

    def is_true(self, node: FlowNode, iteration: int, at: Position) -> bool:
        """Return whether the condition of *node*, which stands at *at*, holds.

        *iteration* is the number of passes done of the innermost loop around, or of *node* itself
        if that is the loop: *at* then has that pass.
        """

    def count_bound(self, node: FlowNode, iteration: int, at: Position) -> int:
        """Return the most passes of the loop *node*, which stands at *at*.

        Its ``maxIterations`` is a template, or it has a pass for each item of its ``over``.
        """


class Move(NamedTuple):
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
    """
    if at is not None and not fits(flow, at, entry=entry):
        raise place_gone(at)
    walk = _AskingWalk(flow, ask, entry)
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
    """Return the nearest place upward with ``onError: continue``; *at* has failed for good.

    None: the thread fails. Where a thread of its own was split off, that place decides, not *at*.
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


class _Walk(ABC):
    """A walk through a flow; who walks says what conditions and bounds are."""

    def __init__(self, flow: Flow, entry: Position | None) -> None:
        self._flow, self._entry = flow, entry

    def begin(self) -> Step:
        entry = self._entry or _START
        return (True, entry) if entry.turn is None else (True, entry.child(0))

    @abstractmethod
    def enter(self, at: Position, node: FlowNode) -> Step:
        """Return what follows when the container *node* is entered."""

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

    @abstractmethod
    def _turn(self, node: FlowNode, around: Position) -> Step:
        """Return what follows the pass *around* of the loop *node*."""


class _AskingWalk(_Walk):
    def __init__(self, flow: Flow, ask: Asker, entry: Position | None) -> None:
        super().__init__(flow, entry)
        self._ask = ask

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


# Which moves of a flow are possible, whatever its conditions said: for the checks of threads.
#
# The answer takes the same time at every pass and depth.


def is_possible(
    flow: Flow,
    previous: Position | None,
    following: Position | None,
    *,
    entry: Position | None = None,
) -> bool:
    """Check that some answers of the conditions lead from *previous* to *following*.

    None as *previous* is before the first step, as *following* the end of the thread. *previous* is
    a place last finished: of an agent, or of a container that was joined or given up; *following*
    is the place of an agent or of a split. *entry* is where the thread began, as in ``next_move``.
    """
    if following is not None:
        kind = flow.nodes[following.place].kind if following.place in flow.nodes else ""
        if kind not in STOPS or not fits(flow, following, entry=entry):
            return False
    if previous is not None and not fits(flow, previous, entry=entry):
        return False
    walk = _WalkTo(following, flow, entry)
    try:
        step = walk.begin() if previous is None else walk.leave(previous)
        while step is not None:
            entering, at = step
            if entering and at == following:
                return True
            step = walk.enter(at, flow.nodes[at.place]) if entering else walk.leave(at)
    except _NoWay:
        return False
    return following is None


class _NoWay(Exception):
    """Whatever the conditions say, the thread stops before."""


class _WalkTo(_Walk):
    """A walk whose conditions lead to *following*, past everything that they can lead past."""

    def __init__(self, following: Position | None, flow: Flow, entry: Position | None) -> None:
        super().__init__(flow, entry)
        self._following = () if following is None else following.parts

    def enter(self, at: Position, node: FlowNode) -> Step:
        inner = self._find_inner(at)
        if inner is None:
            if node.place not in self._flow.passable:
                raise _NoWay
            return (False, at)
        if node.kind == "loop":
            return self._pass_to(node, at, done=0)
        return (True, at.child(0, is_else=inner.is_else))

    def _turn(self, node: FlowNode, around: Position) -> Step:
        if self._find_inner(around) is not None:
            return self._pass_to(node, around, done=around.turn or 0)
        bound = node.literal_bound
        may_leave = "condition" in node.fields or bound is None or (around.turn or 0) >= bound
        if not may_leave and node.place not in self._flow.passable:
            raise _NoWay
        return (False, around.without_turn())

    def _find_inner(self, at: Position) -> Part | None:
        level, around = len(at.parts), Position(self._following[: len(at.parts)])
        is_inside = len(self._following) > level and around.without_turn() == at.without_turn()
        return self._following[level] if is_inside else None

    def _pass_to(self, node: FlowNode, at: Position, *, done: int) -> Step:
        """Begin the pass of a loop that the walk leads to; those before it have no stop."""
        turn, bound = self._following[len(at.parts) - 1].turn or 0, node.literal_bound
        is_next = turn == done + 1 or (turn > done and self._flow.has_passable_passes(node.place))
        if not is_next or (bound is not None and turn > bound):
            raise _NoWay
        return (True, at.in_turn(turn).child(0))
