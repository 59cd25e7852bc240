"""Whether a thread that stands in one flow can go on in another one.

It can if every place on its way is of the same kind there, and has the same agent or label at its
end. Conditions, bounds and what comes later may differ: that is what a change is for.
Rules: FORMAT.md, "What events do".
"""

from uwf_git.model.flow import Flow, FlowNode
from uwf_git.model.position import NotAPosition, Position, parse_position
from uwf_git.model.thread import ThreadState


def find_renamed_place(old: Flow, new: Flow, present: ThreadState) -> str | None:
    """Return the place where the thread stands, waits or tries, if it is another one's in *new*.

    All are of the kinds that they had. A finished agent or container would count as what stands
    there now: a node before it would move all others, and some would run again or never.
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

    So it is if the container is behind it, or has split it, and no loop leads there again; or if
    the thread, which began at *entry*, ends before. "" is the top.
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


def find_lost_entry(old: Flow, new: Flow | None, entry: Position | None) -> str | None:
    """Return where the thread began and ends, if *new* has another kind on the way there."""
    if entry is None or (new is not None and _has_way(old, new, str(entry))):
        return None
    return str(entry)


def find_lost_place(old: Flow | None, new: Flow | None, present: ThreadState) -> str | None:
    """Return the place where the thread stands, waits or tries, if *new* has another kind there.

    None for *old* or *new* is a graph; before its first step a thread may go from one to the other.
    """
    waiting = None if present.waiting is None else present.waiting.at
    split = None if present.split is None else present.split.at
    tried = None if present.tried is None else present.tried.at
    for at in (present.at, waiting, split, tried):
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
    for count in range(1, len(parts) + 1):
        place = Position(parts[:count]).place
        if place not in old.nodes or place not in new.nodes:
            return False
        if old.nodes[place].kind != new.nodes[place].kind:
            return False
    return True
