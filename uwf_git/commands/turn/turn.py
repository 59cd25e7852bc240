"""Turns: one role's attempt at one step, its result, and the thread after a commit."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from uwf_git.agents.reply import AgentReply
from uwf_git.agents.request import never
from uwf_git.commands.turn.limits import Spending
from uwf_git.commands.turn.rules import KeepRules, RetryRules
from uwf_git.errors import name_some
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node
from uwf_git.model.text import visible_line
from uwf_git.model.thread import Status, ThreadState, TransitionRecord
from uwf_git.model.workflow import Role
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.definitions import get_role, get_workflow
from uwf_git.store.threads.run_dir import RunDir, get_run_dir
from uwf_git.store.threads.snapshot import Snapshot

if TYPE_CHECKING:
    from uwf_git.commands.turn.flow import FlowPlace


class Turn(NamedTuple):
    """Everything a player needs to play a role once."""

    store: Store
    snapshot: Snapshot
    present: ThreadState
    started_after: Oid
    """The commit after which the turn began; its run directory has this name."""

    role: str
    agent: Node

    environ: Mapping[str, str]
    workdir: str
    retry: RetryRules = RetryRules(0, 0)
    keep: KeepRules = KeepRules()
    place: "FlowPlace | None" = None
    """The place of a flow that it plays; *present* has the attempts at this place."""

    spending: Spending | None = None
    """The limits that hold for it; None: the thread's own."""

    may_end: Callable[[], bool] = never
    """Asked some times a second: its agent may be ended if it has left its meta in its file."""

    answered: "Played | None" = None
    """The answer that the checks of its role are to check; None: its agent has to answer."""

    @property
    def asked(self) -> Role:
        workflow = get_workflow(self.snapshot, self.present.workflow)
        return get_role(self.snapshot, workflow.roles[self.role])

    @property
    def limited(self) -> Spending:
        return self.spending or Spending(self.thread, self.present)

    @property
    def thread(self) -> ThreadId:
        return self.snapshot.record.thread

    @property
    def at(self) -> str | None:
        """Its place as text; None in a graph."""
        return None if self.place is None else str(self.place.at)

    @property
    def is_free(self) -> bool:
        """Whether the agent may print any text: it plays a role of a flow that asks for nothing."""
        return self.place is not None and self.place.takes_anything(self.snapshot)

    @property
    def timeout_s(self) -> float | None:
        """How long the agent may take, by its place or its own settings; None: no limit."""
        timeout_s = None if self.place is None else self.place.timeout_s
        return self.agent.payload.get("timeout") if timeout_s is None else timeout_s

    @property
    def run_dir(self) -> RunDir:
        """Where its agent leaves its output until the turn is recorded."""
        return get_run_dir(self.store, self.thread, self.started_after)

    @property
    def attempt(self) -> int:
        return self.present.attempts + 1


LIMIT_KIND = "rate-limit"
"""The kind of a failure by a usage limit, in the words of the kit's agents."""


class StepFiles(NamedTuple):
    """What an agent left in files beside its reply."""

    prompt: str = ""

    trace: Mapping[str, Any] | None = None

    kind: str | None = None
    """The kind of its failure, in its own word."""

    usage: Mapping[str, Any] | None = None
    """What a failed agent spent."""

    reset_at: int | None = None
    """When the limit that it hit ends, in ms since 1970."""


class Played(NamedTuple):
    """The result of a turn: a reply or an error."""

    reply: AgentReply | None
    started_ms: int
    duration_ms: int
    error: Mapping[str, Any] | None = None
    """``kind`` and ``message``, when there is no reply."""

    hint: str | None = None
    exit_code: int | None = None
    stdout: bytes = b""
    stderr: bytes = b""
    left: StepFiles = StepFiles()
    env: Mapping[str, str] | None = None
    """The variables of the agent's environment that are recorded, masked."""

    files: str | None = None
    """The commits of the project's files before and after the turn; None: it changed none."""

    left_running: tuple[str, ...] = ()
    """What its agent has started, and what goes on: ``sleep (4711)``."""

    is_stopped: bool = False
    """The agent was stopped from outside (a pause, a kill)."""

    is_kept: bool = False
    """The answer stays in the run directory: nothing is recorded, and the next step takes it up."""

    def describe_left(self, role: str) -> str:
        left = visible_line(name_some(self.left_running, most=3))
        return f"warning: {role} has ended, and what it started goes on: {left}; `kill` ends it"


Player = Callable[[Turn], Played]
"""Plays a turn, or runs the checks of an answered turn. If it raises, nothing is recorded."""


class ThreadResult(NamedTuple):
    """A thread after a commit: the result of every command that moves one."""

    workflow: NodeHash
    thread: ThreadId
    head: NodeHash
    status: Status
    role: str | None
    """The role that took the step, or the role a person plays; None after other events."""

    depth: int
    said: str
    """The subject of the commit, without its first word; of a rejection, why."""

    commit: Oid

    is_rejected: bool = False
    """The step is a verdict that rejects the work."""

    work: str | None = None
    """Of a branch that ended and worked apart: the ref of its work, in the user's repository."""

    branches: tuple[Any, ...] = ()
    """Of a thread that has split: what the step did to each branch, as ``BranchStep``."""


def build_thread_result(record: TransitionRecord, *, said: str, commit: Oid) -> ThreadResult:
    """Return the result that *record* of *commit* describes; *said* is its subject."""
    return ThreadResult(
        workflow=record.workflow,
        thread=record.thread,
        head=record.node,
        status=record.status,
        role=record.role,
        depth=record.depth,
        said=said,
        commit=commit,
    )
