"""The events of a thread: what each may follow, leads to, carries and changes.

The table that the writers of commits and `uwf verify` share. To add an event: its name in
thread.py, a row here, and a function in event_folds.py.
Format: FORMAT.md, "The trailers of a thread commit" and "What events do".
"""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, get_args

from uwf_git.model import event_folds as folds
from uwf_git.model.event_folds import After, Cause, Standing
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node
from uwf_git.model.thread import ENDED, STATUSES, Action, Event, TransitionRecord

_GOES_ON = "ready waiting failed paused"
_OPEN = f"{_GOES_ON} split"


class EventRule(NamedTuple):
    """What one event may do; statuses and fields are words separated by spaces."""

    after: str

    leads_to: str

    fold: Callable[[Standing, Cause], After] | None
    """What it does to status and now.json; None: it begins a thread."""

    carries: str = ""
    """The fields of the record that it sets, of those that only some events set."""

    steps: int = 0
    """How many steps it adds: 1 adds a StepNode as the head, -1 takes the newest step back."""

    person: Literal["", "only", "never"] = ""
    """Whether it may happen in status ``waiting`` for a person: only then, or never then."""

    leaves_turn: bool = False
    """A running agent goes on, and its result is recorded on top."""

    parents: int | None = 1
    """How many commits it follows; None: it says so itself."""

    is_derived: bool = False
    """Its commit follows from those before it, byte for byte: nobody is its author."""

    has_place: bool = False

    tells: Literal["start", "progress", "complete", "error"] = "progress"
    """Which ``workflow:`` event programs that watch are told."""

    @property
    def may_change_files(self) -> bool:
        """Whether an agent or a person played a role."""
        return "agent" in self.carries.split()

    @property
    def has_node(self) -> bool:
        """Whether it adds a StartNode, a StepNode, an Attempt or a Signal."""
        return "cause" in self.carries.split()


RULES: Mapping[Event, EventRule] = {
    "start": EventRule(
        after="", leads_to="ready", fold=None,
        carries="cause", parents=0, tells="start",
    ),
    # The events of a turn.
    "step": EventRule(
        after="ready failed waiting paused", leads_to="ready failed paused",
        fold=folds.after_step,
        carries="role agent cause", steps=1, person="never", has_place=True,
    ),
    "attempt": EventRule(
        after="ready failed waiting paused", leads_to=_GOES_ON, fold=folds.after_attempt,
        carries="role agent attempt cause", person="never", has_place=True,
    ),
    "wait": EventRule(
        after="ready failed waiting", leads_to="waiting", fold=folds.after_wait,
        carries="role", person="never", has_place=True,
    ),
    "answer": EventRule(
        after="waiting", leads_to="ready failed", fold=folds.after_step,
        carries="role agent cause", steps=1, person="only", has_place=True,
    ),
    # Steering: a Signal node has what was asked.
    "pause": EventRule(
        after="ready waiting failed split", leads_to="paused", fold=folds.after_pause,
        carries="cause", leaves_turn=True,
    ),
    "resume": EventRule(
        after="paused waiting", leads_to="ready waiting failed split", fold=folds.after_resume,
        carries="cause", leaves_turn=True, person="never",
    ),
    "retry": EventRule(
        after="failed", leads_to="ready", fold=folds.after_retry,
        carries="cause", leaves_turn=True,
    ),
    "patch": EventRule(
        after=_OPEN, leads_to=_OPEN, fold=folds.after_patch,
        carries="cause", leaves_turn=True,
    ),
    "amend": EventRule(
        after=_OPEN, leads_to=_OPEN, fold=folds.after_amend,
        carries="cause", leaves_turn=True,
    ),
    "poke": EventRule(
        after="ready waiting failed", leads_to="ready", fold=folds.after_poke,
        carries="cause", steps=-1,
    ),
    # A thread goes on in branches, which are threads of their own, and joins them.
    "split": EventRule(
        after="ready failed", leads_to="split", fold=folds.after_split,
        person="never", is_derived=True, has_place=True,
    ),
    "join": EventRule(
        after="split", leads_to="ready", fold=folds.after_join,
        carries="cause", steps=1, parents=None, is_derived=True, has_place=True,
    ),
    # A thread begins on a commit of another thread.
    "fork": EventRule(
        after=" ".join(STATUSES), leads_to="ready", fold=folds.after_fork,
        carries="forked_from", tells="start",
    ),
    # The thread ends.
    "end": EventRule(
        after=_GOES_ON, leads_to="completed", fold=lambda before, _: ("completed", before.state),
        person="never", tells="complete",
    ),
    "kill": EventRule(
        after=" ".join(status for status in STATUSES if status not in ENDED),
        leads_to="killed", fold=lambda before, _: ("killed", before.state),
        tells="error",
    ),
}  # fmt: skip

STEPS = frozenset(event for event, rule in RULES.items() if rule.steps > 0)

CONTROLS = frozenset(event for event, rule in RULES.items() if rule.leaves_turn)
"""Events that leave a turn under way: a running agent goes on."""


def may_follow(event: Event, status: str) -> bool:
    return status in RULES[event].after.split()


def carries(event: Event, field: str) -> bool:
    """Check whether the record of *event* sets *field*."""
    return field in RULES[event].carries.split()


def event_of(action: Action) -> Event:
    """Return the event by which a Signal's action is recorded: its own name, but for ``append``."""
    return "amend" if action == "append" else action


SIGNALLED = frozenset(map(event_of, get_args(Action)))


def signal_of(record: TransitionRecord) -> NodeHash | None:
    return record.cause if record.event in SIGNALLED else None


def apply_event(before: Standing, event: Event, cause: Cause) -> Standing:
    """Return where a thread stands after *event*."""
    fold = RULES[event].fold
    if fold is None:
        raise ValueError(f"{event} cannot follow a commit")  # a bug of the caller
    status, state = fold(before, cause)
    carried = {
        "role": cause.role,
        "agent": cause.agent,
        "attempt": cause.payload.get("attempt", state.attempts),
        "forked_from": before.record.thread,
        "cause": None if cause.node is None else cause.node.hash,
    }
    # An attempt, and a verdict that rejects the work, say whether tries are left.
    is_try = event == "attempt" or cause.verdict == "rejected"
    record = before.record._replace(
        thread=cause.thread or before.record.thread,
        event=event,
        status=status,
        node=_head_after(before, event, cause),
        depth=state.depth,
        workflow=state.workflow,
        workflow_name=cause.workflow_name or before.record.workflow_name,
        at=cause.at if RULES[event].has_place else None,
        parent_thread=None if event == "fork" else before.record.parent_thread,
        turn=_find_turn(before, event, state.workflow),
        retries_left=cause.has_retries if is_try else None,
        files=cause.files if RULES[event].may_change_files else None,
        **{name: value if carries(event, name) else None for name, value in carried.items()},
    )
    return Standing(record, state)


def _find_turn(before: Standing, event: Event, workflow: NodeHash) -> str | None:
    """Return after which commit the turn began that *event* leaves under way."""
    if not RULES[event].leaves_turn or workflow != before.record.workflow:
        return None
    return before.record.turn or before.commit


def begin_thread(
    thread: ThreadId,
    start: Node,
    name: str,
    *,
    initial_state: Mapping[str, object] | None,
    parent: ThreadId | None = None,
) -> Standing:
    """Return where a new thread stands; *name* and *initial_state* are its workflow's.

    *parent* is the thread whose agent starts the new thread.
    """
    state = folds.begin_state(start, initial_state)
    record = TransitionRecord(
        thread=thread,
        event="start",
        status="ready",
        node=start.hash,
        depth=0,
        workflow=state.workflow,
        workflow_name=name,
        cause=start.hash,
        parent_thread=parent,
    )
    return Standing(record, state)


def _head_after(before: Standing, event: Event, cause: Cause) -> NodeHash:
    if cause.back_to is not None:
        return cause.back_to.record.node
    if event in STEPS and cause.node is not None:
        return cause.node.hash
    return before.record.node
