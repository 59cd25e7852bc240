"""Which moves of a flow are possible, whatever its conditions said: for the checks of threads.

Rules: FORMAT.md, "Positions". The answer takes the same time at every pass and depth.
"""

from uwf_git.model.flow import STOPS, Flow
from uwf_git.model.position import Position, fits


def is_possible(
    flow: Flow,
    previous: Position | None,
    following: Position | None,
    *,
    entry: Position | None = None,
) -> bool:
    """Check that some answers of the conditions lead from *previous* to *following*.

    None as *previous* is before the first step, as *following* the end of the thread. *previous* is
    a place last finished: an agent's, a joined container's or one given up; *following* is an
    agent's or one that splits. *entry* is where the thread began, as in ``next_move``.
    """
    if following is not None:
        kind = flow.nodes[following.place].kind if following.place in flow.nodes else ""
        if kind not in STOPS or not fits(flow, following, entry=entry):
            return False
    paths = _Paths(flow, entry)
    if previous is None:
        return paths.begins(following)
    if not fits(flow, previous, entry=entry):
        return False
    if following is None:
        return paths.leaves(previous, paths.top)
    return _goes(paths, previous, following)


def _goes(paths: "_Paths", previous: Position, following: Position) -> bool:
    level = next(
        (
            number
            for number, (old, new) in enumerate(zip(previous.parts, following.parts, strict=False))
            if old != new
        ),
        None,
    )
    if level is None:
        # The same place, or one around or inside the other.
        return False
    old, new = previous.parts[level], following.parts[level]
    if old.is_else != new.is_else:
        return False
    if old.number != new.number:
        return (
            old.number < new.number
            and paths.leaves_below(previous, level)
            and paths.are_passable(previous, level, old.number + 1, new.number)
            and paths.enters(following, level)
        )
    # Another pass of the same loop.
    return (
        old.turn is not None
        and new.turn is not None
        and old.turn < new.turn
        and paths.leaves(previous, level + 1)
        and paths.reaches_pass(following, level, skipped=new.turn - old.turn - 1)
        and paths.enters_list(following, level + 1)
    )


class _Paths:
    """What can be passed on the way between two positions of one thread."""

    def __init__(self, flow: Flow, entry: Position | None) -> None:
        self._flow = flow
        self._branch = entry if entry is not None and entry.turn is None else None
        known = 0 if entry is None else len(entry.parts)
        self._entry = entry
        self.top = known - 1 if self._branch else known
        """The level of the list in which the thread begins and ends."""

    def begins(self, following: Position | None) -> bool:
        """Check that *following* can be the first stop."""
        if following is not None:
            return self.enters_list(following, self.top)
        if self._branch is not None:
            return self._branch.place in self._flow.passable
        first = "0" if self._entry is None else f"{self._entry.place}/0"
        return all(place in self._flow.passable for place in self._flow.list_from(first))

    def leaves(self, at: Position, level: int) -> bool:
        """Check that all after *at* can be passed, up to the end of its list at *level*."""
        return self.leaves_below(at, level) and self._ends_list(at, level)

    def leaves_below(self, at: Position, level: int) -> bool:
        """Check that the node at *level* can be left from *at*, which is in or at it."""
        for number in range(len(at.parts) - 1, level, -1):
            if not self._ends_list(at, number):
                return False
        return all(self._can_leave(at, number) for number in range(level, len(at.parts) - 1))

    def are_passable(self, at: Position, level: int, first: int, end: int) -> bool:
        """Check that the nodes *first* to *end* (not included) of a list can be passed."""
        here = Position(at.parts[:level])
        mark = at.parts[level].is_else
        siblings = (here.child(index, is_else=mark).place for index in range(first, end))
        return all(place in self._flow.passable for place in siblings)

    def enters_list(self, at: Position, level: int) -> bool:
        """Check that *at* can be reached from the beginning of its list at *level*."""
        is_branch = self._branch is not None and level == self.top
        before = 0 if is_branch else at.parts[level].number
        return self.are_passable(at, level, 0, before) and self.enters(at, level)

    def enters(self, at: Position, level: int) -> bool:
        """Check that *at* can be reached once its node at *level* is entered."""
        for number in range(level, len(at.parts)):
            if number > level and not self.are_passable(at, number, 0, at.parts[number].number):
                return False
            turn = at.parts[number].turn
            if turn is not None and not self.reaches_pass(at, number, skipped=turn - 1):
                return False
        return True

    def reaches_pass(self, at: Position, level: int, *, skipped: int) -> bool:
        """Check that the loop at *level* can come to its pass, *skipped* ones having no stop."""
        loop = self._flow.nodes[Position(at.parts[: level + 1]).place]
        bound = loop.literal_bound
        turn = at.parts[level].turn or 1
        return (bound is None or turn <= bound) and (
            skipped == 0 or self._flow.has_passable_passes(loop.place)
        )

    def _ends_list(self, at: Position, level: int) -> bool:
        if self._branch is not None and level == self.top:
            return True
        following = Position(at.parts[: level + 1]).next_sibling().place
        return all(place in self._flow.passable for place in self._flow.list_from(following))

    def _can_leave(self, at: Position, level: int) -> bool:
        turn = at.parts[level].turn
        node = self._flow.nodes[Position(at.parts[: level + 1]).place]
        if node.kind != "loop" or turn is None or "condition" in node.fields:
            return True
        bound = node.literal_bound
        return bound is None or turn >= bound or node.place in self._flow.passable
