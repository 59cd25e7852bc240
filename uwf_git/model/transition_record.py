"""Transition records: what one commit says happened to a thread.

Owns: the words of a commit as values. Knows nothing of: how git keeps them.
"""

from typing import NamedTuple

from uwf_git.model.node_hash import NodeHash
from uwf_git.model.thread import Event, Status
from uwf_git.model.thread_id import ThreadId

FORMAT = 1
"""The version of the store's format that this package writes; store/FORMAT.md has the history."""


class TransitionRecord(NamedTuple):
    """What happened, and what the thread is after it; the trailers of a thread commit."""

    thread: ThreadId
    event: Event
    status: Status
    node: NodeHash
    """The head of the chain: a StepNode or the StartNode."""

    depth: int
    workflow: NodeHash
    workflow_name: str
    role: str | None = None
    """Who acted; None when it was nobody's turn."""

    agent: str | None = None
    """The program that played the role; its whole command is in the AgentConfig node."""

    attempt: int | None = None
    """Which try failed, counted from 1."""

    forked_from: ThreadId | None = None
    """The thread that a ``fork`` begins on: the commit before it is one of that thread."""

    signal: NodeHash | None = None
    """The Signal node that says what was asked, of events by which somebody steers the thread."""
