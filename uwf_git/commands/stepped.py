"""Stepped: what a command tells of a thread after it moved."""

from typing import NamedTuple

from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread import Status
from uwf_git.model.thread_id import ThreadId
from uwf_git.model.transition_record import TransitionRecord


class Stepped(NamedTuple):
    """A thread after a step."""

    workflow: NodeHash
    thread: ThreadId
    head: NodeHash
    status: Status
    role: str | None
    """The role that took the step, or whose turn a person has; None when the thread ended."""

    depth: int
    said: str
    """The subject of the commit: what happened, in words."""


def tell_stepped(record: TransitionRecord, *, said: str) -> Stepped:
    """Tell a thread as *record* has it; *said* is what happened, in words."""
    return Stepped(
        workflow=record.workflow,
        thread=record.thread,
        head=record.node,
        status=record.status,
        role=record.role,
        depth=record.depth,
        said=said,
    )
