"""Turns: one role's try at one step, as commands hand it to whoever plays it.

Owns: the values between the step and the player. Knows nothing of: processes, recording.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from uwf_git.agents.reply import AgentReply
from uwf_git.model.node import Node
from uwf_git.model.thread import Present
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.history import find_base
from uwf_git.store.refs import Oid
from uwf_git.store.snapshot import Snapshot
from uwf_git.store.store import Store


class Turn(NamedTuple):
    """Everything a player needs to play a role once."""

    store: Store
    snapshot: Snapshot
    present: Present
    role: str
    agent: Node
    """The AgentConfig node."""

    environ: Mapping[str, str]
    workdir: str

    @property
    def thread(self) -> ThreadId:
        """The thread it belongs to."""
        return self.snapshot.record.thread

    @property
    def base(self) -> Oid:
        """The commit after which it began: what its agent leaves lies under this name."""
        return find_base(self.store, self.snapshot)

    @property
    def attempt(self) -> int:
        """Which try this is, counted from 1."""
        return self.present.attempts + 1


class Left(NamedTuple):
    """What an agent left in files beside its reply."""

    prompt: str = ""
    """What it told its model."""

    trace: Mapping[str, Any] | None = None
    """What it did: the payload of a Trace node."""

    kind: str | None = None
    """Why it failed, in its own word for the kind."""

    usage: Mapping[str, Any] | None = None
    """What it spent although it failed."""

    reset_at: int | None = None
    """When the limit ends that it hit, in milliseconds since 1970."""


class Played(NamedTuple):
    """What came of a turn: a reply, or what was wrong."""

    reply: AgentReply | None
    started_ms: int
    duration_ms: int
    error: Mapping[str, Any] | None = None
    """``kind`` and ``message``, when there is no reply."""

    hint: str | None = None
    exit_code: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    left: Left = Left()
    is_stopped: bool = False
    """Whether somebody else stopped the agent (a pause, a kill): no verdict on it."""


Player = Callable[[Turn], Played]
"""Plays a turn. What it raises ends the step without a trace in the thread."""
