"""Where a thread of a flow goes next, which moves are possible, and whether another flow fits."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from uwf_git.engine.flow_state import ITERATION, evaluator, read_state
from uwf_git.engine.moderator import expression
from uwf_git.errors import Refused
from uwf_git.model.flow import (
    DEFAULT_BOUND,
    MAX_ITEMS,
    SPLITTING,
    STOPS,
    Flow,
    FlowNode,
    NotAPosition,
    Part,
    Position,
    fits,
    parent,
    parse_position,
)
from uwf_git.model.limits import LONGEST_MS
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import Graph

if TYPE_CHECKING:
    from uwf_git.engine.javascript.evaluator import Together

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
        if at is not None and old is not None and (new is None or not _has_way(old, new, at)):
            return at
    return None


def _has_way(old: Flow, new: Flow, at: str) -> bool:
    try:
        way = parse_position(at).on_the_way
    except NotAPosition:
        return False
    pairs = ((old.nodes.get(each.place), new.nodes.get(each.place)) for each in way)
    return all(was and now and was.kind == now.kind for was, now in pairs)


# Whether a workflow is another workflow with something appended: FORMAT.md, "What events do".

_GROWING = ("roles", "agentOverrides")


class Rules(NamedTuple):
    payload: Mapping[str, Any]

    flow: Flow | None
    graph: Graph | None


def find_other_change(old: Rules, new: Rules) -> str | None:
    """Return what *new* has that no append to *old* makes; None if an append may have made it.

    Roles and agents may be replaced by others of the same name; new ways of a graph come before the
    older ways of their position, and an unconditional new way hides these.
    """
    for name in sorted({*old.payload, *new.payload} - {*_GROWING, "flow", "moderator"}):
        if old.payload.get(name) != new.payload.get(name):
            return f"has another {name}"
    for name in _GROWING:
        for role in old.payload.get(name, ()):
            if role not in new.payload.get(name, ()):
                return f"lacks {role} in {name}"
    if (old.flow is None, old.graph is None) != (new.flow is None, new.graph is None):
        return "is of another kind"
    if old.flow is not None and new.flow is not None:
        return _find_in_flow(old.flow, new.flow)
    for source, ways in (old.graph or {}).items():
        found = (new.graph or {}).get(source, ())
        if all(way.condition is not None for way in found) and not set(ways) <= set(found):
            return f"lacks ways from {source}"
    return None


def _find_in_flow(old: Flow, new: Flow) -> str | None:
    if new.language != old.language:
        return f"is in {new.language}"
    for place, node in old.nodes.items():
        if new.nodes.get(place) != node:
            return f"differs at {place}"
    added = [place for place in new.nodes if place not in old.nodes]
    tops = [place for place in added if parent(place) is None or parent(place) in old.nodes]
    if len({parent(place) for place in tops}) > 1:
        return f"has new nodes in several lists: {', '.join(tops[:4])}"
    for place in tops:
        if place.rpartition("/")[2].startswith("e"):
            return f"has a new node in an else: {place}"
    return None


# Where a thread of a flow goes next: one pure function of its position and what conditions say.
#
# The cost depends on the flow alone, never on the steps before. Rules: FORMAT.md, "Positions".

MOST_NODES = 10_000
"""How many nodes one move may pass: loops whose conditions reach no agent must end."""


class LoopExhausted(Refused):
    """A loop with ``onExhausted: stop`` has made its last pass, and its condition still holds."""

    code = "loop-exhausted"

    def __init__(self, node: FlowNode, at: Position, passes: int) -> None:
        super().__init__(
            f"loop {node.label} at {at} made {passes} passes and its condition still holds",
            position=str(at),
            passes=passes,
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
        # Another flow took the place of the thread's meanwhile.
        raise Refused(
            f"the flow has no place {at}, where the thread stands",
            code="no-such-place",
            hint="`uwf thread amend ID --workflow FILE` gives it a workflow that has it",
            position=str(at),
        )
    walk = _AskingWalk(flow, ask, entry)
    step = walk.begin() if at is None else walk.leave(at)
    for _count in range(MOST_NODES):
        if step is None:
            return Move("end", None, None)
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
    for around in at.on_the_way[-2::-1]:
        if flow.nodes[around.place].kind == "loop":
            return (around.turn or 1) - 1
    return 0


def find_given_up(flow: Flow, at: Position, *, entry: Position | None = None) -> Position | None:
    """Return the nearest place upward with ``onError: continue``; *at* has failed for good.

    None: the thread fails. Where a thread of its own was split off, that place decides, not *at*.
    """
    # The place of a branch belongs to its child; of an item it does not.
    inside = 0 if entry is None else len(entry.parts) - (entry.turn is None)
    position: Position | None = at
    while position is not None and len(position.parts) > inside:
        if flow.nodes[position.place].fields.get("onError") == "continue":
            return position
        position = position.up
    return None


Step = tuple[bool, Position] | None
"""Enter (True) or leave (False) a position; None is the end."""


class _Walk(ABC):
    """A walk through a flow; who walks says what conditions and bounds are."""

    def __init__(self, flow: Flow, entry: Position | None) -> None:
        self._flow, self._entry = flow, entry

    def begin(self) -> Step:
        entry = self._entry or parse_position("0")
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
        is_last = done >= bound
        # After the last pass the condition decides only whether the loop may be left.
        is_asked = "condition" in node.fields
        if is_last and (not is_asked or node.fields.get("onExhausted") != "stop"):
            return (False, around.without_turn())
        if is_asked and not self._ask.is_true(node, done, around):
            return (False, around.without_turn())
        if is_last:
            raise LoopExhausted(node, around.without_turn(), done)
        return (True, around.in_turn(done + 1).child(0))


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
        is_place = fits(flow, following, entry=entry)
        if not is_place or flow.nodes[following.place].kind not in STOPS:
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
        is_passable = self._flow.passable.issuperset(self._flow.children(node.place))
        is_next = turn == done + 1 or (turn > done and is_passable)
        if not is_next or (bound is not None and turn > bound):
            raise _NoWay
        return (True, at.in_turn(turn).child(0))


# The expressions of a flow, evaluated where a thread stands: conditions, templates, lists.
#
# Answers depend on the arguments alone. Call JSONata within limits (agents/limited_fork.py);
# JavaScript has its own.


def _bad_flow_value(node: FlowNode, field_name: str, problem: str) -> Refused:
    return Refused(
        f"{field_name} of {node.label} ({node.place}) {problem}",
        code="flow-value",
        place=node.place,
        field=field_name,
    )


class _Asked:
    """What was asked of one state: expressions share their limits, and lists are read once."""

    def __init__(self) -> None:
        self.lists: dict[str, tuple[Position, list[Any]]] = {}
        """By place, the newest: where a move has left a loop it does not come again."""

    @cached_property
    def javascript(self) -> "Together":
        return evaluator.Together()


@dataclass(frozen=True, slots=True)
class FlowWords:
    """What evaluates a flow's expressions: an `Asker` of `flow_move`."""

    language: str
    state: Mapping[str, Any]
    prompt: str
    depth: int
    items: Mapping[str, Any] = field(default_factory=dict)

    flow: Flow | None = None

    _asked: "_Asked" = field(default_factory=_Asked, compare=False, repr=False)

    @property
    def _is_jsonata(self) -> bool:
        return self.language == "jsonata"

    def inside(self, at: Position) -> "FlowWords":
        """Return what evaluates expressions at *at*: with the items of the loops on the way.

        The state has such an item under its name, as a map's item in its branch, and its number,
        from 0, under that name and ``Index``. Neither is stored.
        """
        words, flow = self, self.flow
        for loop in at.on_the_way:
            node = None if flow is None or not loop.turn else flow.nodes.get(loop.place)
            if flow is not None and node is not None and node.has_items:
                here = loop.without_turn()
                items = words.list_once(node, count_passes(flow, here), here)
                words = words._within_item(node, items, loop.turn or 0)
        return words

    def list_once(self, node: FlowNode, iteration: int, at: Position) -> list[Any]:
        """Return what *node* at *at* goes over, for words that are inside of what is around it."""
        lists = self._asked.lists
        known = lists.get(node.place)
        if known is None or known[0] != at:
            known = lists[node.place] = (at, self.list_here(node, iteration))
        return known[1]

    def _within_item(self, node: FlowNode, items: list[Any], number: int) -> "FlowWords":
        """Return it in a pass of the loop *node*; a list that is shorter now has no such item."""
        own = {name: value for name, value in self.state.items() if name != node.item}
        items_around = {name: value for name, value in self.items.items() if name != node.item}
        if number <= len(items):
            own |= {node.item: items[number - 1], f"{node.item}Index": number - 1}
            items_around[node.item] = items[number - 1]
        return replace(self, state=own, items=items_around)

    def is_true(self, node: FlowNode, iteration: int, at: Position) -> bool:
        """Return whether the condition of *node*, which stands at *at*, holds."""
        return self.inside(at).holds(str(node.fields["condition"]), iteration)

    def accepts(self, node: FlowNode, meta: Any, iteration: int, at: Position) -> bool:
        """Return whether a verdict with *meta* accepts the work at *node*, which stands at *at*."""
        return self.inside(at).holds(str(node.verified_by["when"]), iteration, meta=meta)

    def holds(self, condition: str, iteration: int, **more: Any) -> bool:
        names = {**self._names(iteration), **more}
        if self._is_jsonata:
            return bool(expression.evaluate_condition(condition, names))
        return self._asked.javascript.holds(condition, names)

    def count_bound(self, node: FlowNode, iteration: int, at: Position) -> int:
        """Return the most passes of the loop *node*, which stands at *at*."""
        if node.has_items:
            return len(self.list_items(node, iteration, at.without_turn()))
        value = self.fill(node.fields.get("maxIterations", DEFAULT_BOUND), iteration, at)
        return _read_whole(node, "maxIterations", value, least=1)

    def count_retries(self, node: FlowNode, iteration: int, at: Position) -> int | None:
        """Return the ``retries`` of *node* for an agent at *at*; None: it says nothing."""
        value = self.fill(node.fields.get("retries"), iteration, at)
        return None if value is None else _read_whole(node, "retries", value, least=0)

    def find_timeout_ms(
        self, node: FlowNode, template: Any, iteration: int, at: Position
    ) -> float | None:
        """Return *template*, a ``timeout`` of *node*, for an agent at *at*; None: no timeout."""
        value = self.fill(template, iteration, at)
        if value is None:
            return None
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 < value <= LONGEST_MS:
            wanted = "no number of milliseconds above 0, of at most a year"
            raise _bad_flow_value(node, "timeout", f"is {_shown(value)}, and {wanted}")
        return float(value)

    def list_items(self, node: FlowNode, iteration: int, at: Position) -> list[Any]:
        """Return what the map or loop *node*, which stands at *at*, goes over."""
        return self.inside(at).list_once(node, iteration, at)

    def list_here(self, node: FlowNode, iteration: int) -> list[Any]:
        """Return what *node* goes over, for words that are inside of what is around it."""
        over = str(node.fields["over"])
        is_template = "${" in over
        value = self.fill_here(over, iteration) if is_template else self._evaluate(over, iteration)
        if not isinstance(value, list):
            mend = "; brackets around the expression make it one" if self._is_jsonata else ""
            raise _bad_flow_value(node, "over", f"is {_shown(value)}, and no list{mend}")
        if len(value) > MAX_ITEMS:
            problem = f"has {len(value):,} items, of at most {MAX_ITEMS:,}"
            raise _bad_flow_value(node, "over", problem)
        return value

    def ask_workflow(
        self, node: FlowNode, iteration: int, at: Position
    ) -> tuple[str, Mapping[str, Any] | None]:
        """Return what *node*, which stands at *at*, asks of its workflow: the prompt, and a state.

        The state is merged into that with which the workflow begins.
        """
        if node.fields.get("input") is None:
            return self.prompt, None
        value = self.fill(node.fields["input"], iteration, at)
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return text, value if isinstance(value, dict) else None

    def fill(self, template: Any, iteration: int, at: Position) -> Any:
        """Return a template filled at *at*; of an object every member, else as it is."""
        is_literal = not isinstance(template, str | dict | list)
        return template if is_literal else self.inside(at).fill_here(template, iteration)

    def fill_here(self, template: Any, iteration: int) -> Any:
        if isinstance(template, dict):
            return {name: self.fill_here(each, iteration) for name, each in template.items()}
        if isinstance(template, list):
            return [self.fill_here(each, iteration) for each in template]
        if not isinstance(template, str) or "${" not in template:
            return template
        if self._is_jsonata:
            return _fill(template, lambda source: self._evaluate(source, iteration))
        return self._asked.javascript.fill(template, self._names(iteration))

    def _evaluate(self, source: str, iteration: int) -> Any:
        names = self._names(iteration)
        if self._is_jsonata:
            return expression.evaluate_value(source, names)
        return self._asked.javascript.evaluate(source, names)

    def _names(self, iteration: int) -> dict[str, Any]:
        return {
            **self.items,
            "state": read_state(self.state, iteration),
            ITERATION: iteration,
            "prompt": self.prompt,
            "depth": self.depth,
        }


def name_items(flow: Flow, state: Mapping[str, Any], entry: Position | None) -> dict[str, Any]:
    way = () if entry is None else entry.on_the_way
    nodes = [flow.nodes[each.place] for each in way if each.place in flow.nodes]
    return {node.item: state.get(node.item) for node in nodes if node.kind == "map"}


def _fill(template: str, evaluate: Callable[[str], Any]) -> Any:
    """Fill a template of JSONata: alone a value keeps its type, within text it becomes text."""
    pieces = expression.split_template(template)
    if len(pieces) == 1 and pieces[0].is_expression:
        return evaluate(pieces[0].text)
    values = [evaluate(each.text) if each.is_expression else each.text for each in pieces]
    return "".join(
        each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in values
    )


def _read_whole(node: FlowNode, field_name: str, value: Any, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise _bad_flow_value(node, field_name, f"is {_shown(value)}, and no whole number")
    if value < least:
        raise _bad_flow_value(node, field_name, f"is {_shown(value)}, and at least {least} is due")
    return int(value)


def _shown(value: Any) -> str:
    return f"{json.dumps(value, ensure_ascii=False):.60}"
