"""Positions: where a thread of a flow stands, as text and as parts.

A position is a place in which each loop on the way carries its pass (from 1) and each map its item
(from 0), after a dot: ``0.3/1.2/e0``. Source: FORMAT.md, "Positions".
"""

import math
import re
from typing import NamedTuple

from uwf_git.model.flow import MAX_LEVELS, Flow

_NUMBER = r"(?:0|[1-9][0-9]{0,14})"
_PART = re.compile(rf"(e?)({_NUMBER})(?:\.({_NUMBER}))?", re.ASCII)


class NotAPosition(ValueError):
    """The text is no position."""


class Part(NamedTuple):
    """One level of a position."""

    is_else: bool
    number: int
    """From 0, in its list."""

    turn: int | None = None
    """The pass of a loop or the item of a map; None at the last level, and in all other nodes."""

    def __str__(self) -> str:
        turn = "" if self.turn is None else f".{self.turn}"
        return f"{'e' if self.is_else else ''}{self.number}{turn}"


class Position(NamedTuple):
    """Where a thread stands in its flow."""

    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return "/".join(map(str, self.parts))

    @property
    def place(self) -> str:
        """The place in the flow, without passes and items."""
        return "/".join(str(part._replace(turn=None)) for part in self.parts)

    @property
    def up(self) -> "Position | None":
        """The position of the container around it; None at the top."""
        if len(self.parts) == 1:
            return None
        return Position(self.parts[:-1]).without_turn()

    @property
    def turn(self) -> int | None:
        """The pass or item that the last level carries, as an entry of a map's child does."""
        return self.parts[-1].turn

    def in_turn(self, turn: int) -> "Position":
        """Return it in the pass or item *turn* of its own."""
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

    def order(self) -> tuple[tuple[bool, int, float], ...]:
        """Return its key for comparing: in one thread positions grow.

        A container's own position counts after all positions inside it.
        """
        return tuple(
            (part.is_else, part.number, math.inf if part.turn is None and last else part.turn or 0)
            for part, last in zip(self.parts, [False] * (len(self.parts) - 1) + [True], strict=True)
        )


def parse_position(text: str) -> Position:
    """Read a position in its one spelling, without leading zeros.

    Raises:
        NotAPosition: it is none.
    """
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
    if not _begins_with(position, known) or position.place not in flow.nodes:
        return False
    if position.turn is not None:
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
