"""Flows as values: places, positions, containers and agents."""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, Literal, NamedTuple, get_args

from uwf_git.model.builtin import find_reference
from uwf_git.model.names import NodeHash

# Flows as values: the containers and agents of a Flow node, by their places.
#
# A place is the way from the top: indexes joined by ``/``, with ``e`` before one below ``else``.
# The root is ``0``; what was appended is ``1``, ``2``, … Source: FORMAT.md, "Flow".

Kind = Literal["agent", "sequential", "parallel", "loop", "conditional", "map", "workflow"]

KINDS: tuple[str, ...] = get_args(Kind)
SPLITTING: frozenset[str] = frozenset({"parallel", "map", "workflow"})
"""The kinds whose nodes run in threads of their own."""

HOLDING: frozenset[str] = frozenset({"sequential", "parallel", "loop", "conditional", "map"})

NEEDED = {"agent": "agentId", "conditional": "condition", "map": "over", "workflow": "use"}
"""The field without which a node of the kind cannot be."""

STOPS: frozenset[str] = frozenset({"agent", *SPLITTING})
"""The kinds at which a thread stops for work to be done."""

MAX_NODES = 1_000
MAX_LEVELS = 32
MAX_NESTING = 16
"""How many threads may lie in one another."""

DEFAULT_BOUND = 100
"""The passes of a loop without ``maxIterations`` (seed 004)."""

MAX_ITEMS = 1_000
"""The most branches of a map, and the most passes of a loop over a list."""

ROOT = "0"

_PLACE = re.compile(r"(?:0|[1-9][0-9]{0,3})(?:/e?(?:0|[1-9][0-9]{0,3}))*")


class FlowNode(NamedTuple):
    place: str
    kind: Kind
    fields: Mapping[str, Any]
    """As in the file, without ``type``, ``nodes`` and ``else``."""

    @property
    def label(self) -> str:
        """The name for people: ``id``, else ``name``, ``agentId`` or the type."""
        fields = self.fields
        return str(fields.get("id") or fields.get("name") or fields.get("agentId") or self.kind)

    @property
    def agent(self) -> str:
        return str(self.fields["agentId"])

    @property
    def output(self) -> str:
        """The key of the state that gets the result."""
        named = self.fields["agentId"] if self.kind == "agent" else self.label
        return str(self.fields.get("output", f"{named}Output"))

    @property
    def has_items(self) -> bool:
        return self.kind == "loop" and "over" in self.fields

    @property
    def item(self) -> str:
        """The key of the state that holds an item of this list, and its name in expressions."""
        return str(self.fields.get("as", "item"))

    @property
    def verified_by(self) -> Mapping[str, Any]:
        """What verifies the work of this agent; empty if nothing does."""
        found: Mapping[str, Any] = self.fields.get("verifiedBy", {})
        return found

    @property
    def verifier(self) -> str | None:
        """The role that verifies the work of this agent; None: it is done when it is done."""
        return self.verified_by.get("agentId")

    @property
    def verdict_output(self) -> str:
        return str(self.verified_by.get("output", f"{self.verifier}Output"))

    @property
    def roles(self) -> tuple[str, ...]:
        """Who acts here: who does the work, and who verifies it; also while the file is read."""
        named = (self.fields.get("agentId"), self.verifier) if self.kind == "agent" else ()
        return tuple(str(each) for each in named if each is not None)

    def find_role(self, *, is_verdict: bool) -> str:
        """Return whose turn it is here: who does the work, or who verifies it."""
        return str((self.verified_by if is_verdict else self.fields)["agentId"])

    def list_inputs(self, *, is_verdict: bool) -> tuple[Any, ...]:
        """Return the templates of what a turn is told: its input and, for a verdict, the work's."""
        of_work = self.fields.get("input")
        return (self.verified_by.get("input"), of_work) if is_verdict else (of_work,)

    @property
    def literal_bound(self) -> int | None:
        """The most passes of this loop; None if the state decides, when it is needed."""
        if self.has_items:
            return None
        bound = self.fields.get("maxIterations", DEFAULT_BOUND)
        return bound if isinstance(bound, int) else None

    @property
    def workflow(self) -> NodeHash | None:
        """The Workflow node that a ``workflow`` runs."""
        return find_reference(self.fields.get("workflow"))


class Flow:
    """The table of a flow; nobody changes it. A lookup takes the same time in any flow.

    *nodes* are by place, in the order of the file; *language* is ``javascript`` or ``jsonata``.
    """

    has_results = False
    """A branch of it results in work where it ends with a verdict or a join (FORMAT.md)."""

    def __init__(self, nodes: Mapping[str, FlowNode], language: str = "javascript") -> None:
        self.nodes = nodes
        self.language = language

    def children(self, place: str, *, of_else: bool = False) -> list[str]:
        """List the places directly below *place*: in ``nodes``, or in ``else``."""
        return list(self.list_from(f"{place}/{'e' if of_else else ''}0"))

    def has_else(self, place: str) -> bool:
        """Check whether the conditional at *place* has an ``else``."""
        return f"{place}/e0" in self.nodes

    def next_sibling(self, place: str) -> str | None:
        """Return the place after *place* in the same list, or None."""
        up, slash, last = place.rpartition("/")
        mark = "e" if last.startswith("e") else ""
        after = f"{up}{slash}{mark}{int(last.removeprefix('e')) + 1}"
        return after if after in self.nodes else None

    @cached_property
    def passable(self) -> frozenset[str]:
        """The places that conditions may lead through without a stop for an agent or a split."""
        return self._find_passable(frozenset())

    def _find_passable(self, left: frozenset[str]) -> frozenset[str]:
        found = set(left)
        for place in sorted(self.nodes, key=lambda each: each.count("/"), reverse=True):
            node = self.nodes[place]
            if node.kind in STOPS:
                continue
            # A list may be empty.
            through = node.has_items or found.issuperset(self.children(place))
            if node.kind == "conditional":
                through = through or found.issuperset(self.children(place, of_else=True))
            if through:
                found.add(place)
        return frozenset(found)

    @property
    def needs_results(self) -> bool:
        """Whether a thread of it, or an item of a map, may end with a verdict or a join."""
        return any(each.kind in SPLITTING or each.verifier for each in self.ends)

    @property
    def ends(self) -> list[FlowNode]:
        """The agents and splits with which a thread of it, or an item of a map, may end."""
        left = frozenset(
            at
            for at, node in self.nodes.items()
            if node.fields.get("onError") == "continue" and node.kind not in SPLITTING
        )
        passable = self._find_passable(left)

        def may_end(place: str) -> bool:
            up, rest = parent(place), islice(self.list_from(place), 1, None)
            is_left = any(place.startswith(f"{each}/") for each in left)
            if not (is_left or all(each in passable for each in rest)):
                return False
            return up is None or self.nodes[up].kind == "map" or may_end(up)

        return [each for each in self.nodes.values() if each.kind in STOPS and may_end(each.place)]

    def list_around(self, place: str) -> Iterator[FlowNode]:
        """Yield the node at *place*, and those around it from there outward."""
        around: str | None = place
        while around is not None:
            yield self.nodes[around]
            around = parent(around)

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """The roles that its agents need, each once, in the order of the file."""
        return tuple(dict.fromkeys(role for node in self.nodes.values() for role in node.roles))

    def list_from(self, first: str) -> Iterator[str]:
        """Yield *first* and the places after it in the same list; none if there is no *first*."""
        place: str | None = first if first in self.nodes else None
        while place is not None:
            yield place
            place = self.next_sibling(place)


def parent(place: str) -> str | None:
    """Return the place of the container around *place*; None at the top."""
    return place.rpartition("/")[0] or None


def level(place: str) -> int:
    """Return how deep *place* lies: 1 at the top."""
    return place.count("/") + 1


def read_table(nodes: Mapping[str, Mapping[str, Any]]) -> dict[str, FlowNode]:
    """Return the nodes by their places, as a Flow node's payload has them; nothing is checked."""
    table = {str(place): dict(fields) for place, fields in nodes.items()}
    return {place: FlowNode(place, fields.pop("type"), fields) for place, fields in table.items()}


def parse_flow(payload: Any) -> Flow:
    """Read a Flow node's payload; ValueError: no root, a gap, over a limit, or an odd node."""
    try:
        nodes = read_table(payload["nodes"])
        language = payload.get("language", "javascript")
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"no table of nodes: {error!r:.60}") from error
    if ROOT not in nodes or len(nodes) > MAX_NODES:
        raise ValueError(
            f"{len(nodes)} nodes, of at most {MAX_NODES:,}, and one has to be the root"
        )
    for node in nodes.values():
        _check(node, nodes)
    return Flow(nodes, language)


def _check(node: FlowNode, nodes: Mapping[str, FlowNode]) -> None:
    place, fields = node.place, node.fields
    if node.kind not in KINDS or not _PLACE.fullmatch(place) or level(place) > MAX_LEVELS:
        raise ValueError(f"no place of a node: {place:.60}")
    up, slash, last = place.rpartition("/")
    index, mark = int(last.removeprefix("e")), "e" if last.startswith("e") else ""
    if index and f"{up}{slash}{mark}{index - 1}" not in nodes:
        raise ValueError(f"no node before {place}")
    if slash and (up not in nodes or nodes[up].kind not in HOLDING):
        raise ValueError(f"nothing holds {place}")
    if mark and nodes[up].kind != "conditional":
        raise ValueError(f"{up} has no else")
    if node.kind in HOLDING and f"{place}/0" not in nodes:
        raise ValueError(f"{place} holds nothing")
    needed = NEEDED.get(node.kind)
    if needed is not None and not fields.get(needed):
        raise ValueError(f"{place} has no {needed}")
    verified = fields.get("verifiedBy")
    if verified is not None and not (node.kind == "agent" and verified.get("agentId")):
        raise ValueError(f"{place} cannot be verified")
    if verified and (not verified.get("when") or verified["agentId"] == fields["agentId"]):
        raise ValueError(f"{place} does not say who verifies it, and when")
    if node.kind == "workflow" and node.workflow is None:
        raise ValueError(f"{place} names no workflow")


# Positions: where a thread of a flow stands, as text and as parts.
#
# A position is a place in which each loop on the way carries its pass (from 1) and each map its
# item (from 0), after a dot: ``0.3/1.2/e0``. Source: FORMAT.md, "Positions".

_NUMBER = r"(?:0|[1-9][0-9]{0,14})"
_PART = re.compile(rf"(e?)({_NUMBER})(?:\.({_NUMBER}))?", re.ASCII)


class NotAPosition(ValueError):
    """The text is no position."""


class Part(NamedTuple):
    is_else: bool
    number: int
    """From 0, in its list."""

    turn: int | None = None
    """The pass of a loop or the item of a map; None at the last level, and in all other nodes."""

    def __str__(self) -> str:
        turn = "" if self.turn is None else f".{self.turn}"
        return f"{'e' if self.is_else else ''}{self.number}{turn}"


class Position(NamedTuple):
    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return "/".join(map(str, self.parts))

    @property
    def place(self) -> str:
        """The place in the flow, without passes and items."""
        return "/".join(str(part._replace(turn=None)) for part in self.parts)

    @property
    def on_the_way(self) -> "list[Position]":
        """The positions of what is around it from the top on, each with its turn; then itself."""
        return [Position(self.parts[:count]) for count in range(1, len(self.parts) + 1)]

    @property
    def up(self) -> "Position | None":
        """The position of the container around it; None at the top."""
        return Position(self.parts[:-1]).without_turn() if len(self.parts) > 1 else None

    @property
    def turn(self) -> int | None:
        """The pass or item that the last level carries, as an entry of a map's child does."""
        return self.parts[-1].turn

    def in_turn(self, turn: int) -> "Position":
        return Position((*self.parts[:-1], self.parts[-1]._replace(turn=turn)))

    def without_turn(self) -> "Position":
        """Return the position of the loop or map itself."""
        return Position((*self.parts[:-1], self.parts[-1]._replace(turn=None)))

    def child(self, index: int, *, is_else: bool = False) -> "Position":
        """Return the position of a node directly below this one."""
        return Position((*self.parts, Part(is_else, index)))

    def next_sibling(self) -> "Position":
        """Return the position after it in the same list, whether there is a node or not."""
        last = self.parts[-1]
        return Position((*self.parts[:-1], Part(last.is_else, last.number + 1)))


def parse_position(text: str) -> Position:
    """Read a position in its one spelling, without leading zeros, or raise NotAPosition."""
    pieces = text.split("/", MAX_LEVELS)
    parts: list[Part] = []
    for piece in pieces:
        match = _PART.fullmatch(piece)
        if match is None or len(pieces) > MAX_LEVELS:
            raise NotAPosition(f"no position: {text!r:.80}")
        mark, index, turn = match.groups()
        parts.append(Part(bool(mark), int(index), None if turn is None else int(turn)))
    return Position(tuple(parts))


def fits(flow: Flow, position: Position, *, entry: Position | None = None) -> bool:
    """Check that *position* is a place of *flow* where a thread that began at *entry* may stand.

    Each loop on the way has a pass; beyond the entry nothing else has a turn, and no container that
    splits lies on the way. Whether a pass keeps a bound is not checked.
    """
    known = () if entry is None else entry.parts
    is_place = position.turn is None and position.place in flow.nodes
    if not is_place or not _begins_with(position, known):
        return False
    place = ""
    for number, part in enumerate(position.parts[:-1]):
        place = f"{place}/{part._replace(turn=None)}".removeprefix("/")
        node = flow.nodes[place]
        if node.kind == "loop":
            if not part.turn:
                return False
        elif node.kind == "map":
            if number >= len(known) or known[number].turn is None:
                return False
        elif part.turn is not None or (node.kind == "parallel" and number + 1 >= len(known)):
            return False
    return True


def _begins_with(position: Position, known: tuple[Part, ...]) -> bool:
    if not known:
        return True
    *around, last = known
    if position.parts[: len(around)] != tuple(around) or len(position.parts) < len(known):
        return False
    found = position.parts[len(around)]
    # A branch may be a loop, which then has a pass.
    return found == last or (last.turn is None and found._replace(turn=None) == last)
