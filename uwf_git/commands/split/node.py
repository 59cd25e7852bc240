"""The nodes of a flow as those who watch a thread know them: a name, and the pass."""

from uwf_git.commands.split.commits import find_in_flow, read_entry
from uwf_git.engine.events import LoopPass
from uwf_git.engine.events import Node as EventNode
from uwf_git.engine.flow_move import count_passes
from uwf_git.model.flow import Flow, Position, parse_position
from uwf_git.model.thread import ThreadState
from uwf_git.store.threads.snapshot import Snapshot


def find_node(snapshot: Snapshot, at: str | None) -> EventNode | None:
    """Return the node at the place *at*; None in a graph, or if the flow has no such place."""
    found = find_in_flow(snapshot, at)
    if found is None:
        return None
    flow, position = found
    return _describe(flow, position, count_passes(flow, position) + 1)


def list_new_passes(before: Snapshot, present: ThreadState, at: str | None) -> list[LoopPass]:
    """List the loop passes that a turn or split at *at* after *before* begins, outermost first."""
    place = find_in_flow(before, at)
    if place is None or _was_tried(present, at):
        return []
    flow, position = place
    last = read_entry(before) if present.at is None else parse_position(present.at)
    found: list[LoopPass] = []
    for level in range(1, len(position.parts)):
        around = position.parts[:level]
        loop = Position(around)
        is_begun = last is not None and last.parts[:level] == around
        if flow.nodes[loop.place].kind == "loop" and not is_begun:
            found.append(LoopPass(_describe(flow, loop, loop.turn or 1), level))
    return found


def _was_tried(present: ThreadState, at: str | None) -> bool:
    return present.trying == at or (present.tried is not None and present.tried.at == at)


def _describe(flow: Flow, position: Position, turn: int) -> EventNode:
    node = flow.nodes[position.place]
    return EventNode(node.label, str(node.fields.get("name") or node.label), turn)
