"""The record of a commit: its trailers as a value. Which event sets which: event_rules.py."""

from typing import NamedTuple

from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread import Event, Status
from uwf_git.model.thread_id import ThreadId

FORMAT = 2
"""The format version that this package writes; its history is in store/FORMAT.md."""


class TransitionRecord(NamedTuple):
    """The trailers of a thread commit: the event, and the thread after it."""

    thread: ThreadId
    event: Event
    status: Status
    node: NodeHash
    """The head of the chain: a StepNode or the StartNode."""

    depth: int
    workflow: NodeHash
    workflow_name: str
    role: str | None = None
    """The role that acted, or the role a person plays."""

    agent: str | None = None
    """The program that played the role; the whole command is in the AgentConfig node."""

    attempt: int | None = None
    """Which attempt failed, from 1."""

    forked_from: ThreadId | None = None
    """The thread that was forked: the parent commit belongs to it."""

    cause: NodeHash | None = None
    """The node that the event is about: a StartNode, a StepNode, an Attempt or a Signal."""

    at: str | None = None
    """The place of a flow at which the role acted, or the person is asked."""

    parent_thread: ThreadId | None = None
    """The thread whose agent started this one; a fork drops it."""

    turn: str | None = None
    """Of an event that leaves a turn under way: the commit after which that turn began."""

    retries_left: bool | None = None
    """Of an attempt: the agent may try again; of a verdict that rejects work: so may the worker."""

    files: str | None = None
    """`<before>..<after>`: the commits of the work directory that hold what the turn changed."""
