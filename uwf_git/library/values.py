"""The values that a task returns: its status, a step, a run, an event. Source: seed 004.

Times are in milliseconds since 1970.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, NamedTuple, cast

from uwf_git.commands.after import follow_up
from uwf_git.commands.caller import Caller
from uwf_git.commands.commit_events import EventOptions
from uwf_git.commands.control.files import FilesAt, view_files
from uwf_git.commands.drive_thread import Driven, StoppedBy, Watcher
from uwf_git.commands.inspect.show import read_moment, read_spent, view_moment
from uwf_git.commands.journal import EventsRequest, EventStream
from uwf_git.commands.turn.next_move import find_next_move
from uwf_git.commands.turn.turn import ThreadResult
from uwf_git.debug_log import debug
from uwf_git.engine.events import EventType, parse_event_id
from uwf_git.engine.masking import find_secrets
from uwf_git.errors import AgentFailed, StoreDamaged, UwfError
from uwf_git.library.arguments import WrongArgument
from uwf_git.library.players import PlayerFunction, StepMemory
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ENDED, TASK_WORDS, Status, ThreadState
from uwf_git.model.workflow import START, freeze
from uwf_git.store.durable import read_stamp
from uwf_git.store.objects.objects import DurableObjects, ObjectStore
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.history import read_snapshot
from uwf_git.store.threads.naming import resolve_thread

# The place of a runtime: its store, caller and players.
#
# Each call opens the store anew: Python threads share files only, which locks and refs guard
# between processes as well. A thread keeps what it has read of a store's objects for its next
# call; what an object's name stands for never changes.

# The first that a ULID cannot hold.
_LAST_MS = 2**48


class KeptStore(threading.local):
    """The store that a Python thread keeps for reading."""

    opened: Store | None = None
    pid = 0
    """The process that opened it: a forked child must not share its files."""


class Place(NamedTuple):
    """The store of a runtime, and the caller of its commands."""

    path: str
    """The git directory."""

    cwd: str
    environ: Mapping[str, str]
    now_ms: Callable[[], int]
    agent: str | None
    """The agent of roles without one; None: the one in git config."""

    players: Mapping[str, PlayerFunction]
    kept: KeptStore
    memory: StepMemory
    """What the players have read."""

    @property
    def caller(self) -> Caller:
        """The caller of the commands."""
        return Caller(self.now_ms, self.environ, self.cwd)

    def open(self) -> Store:
        """Open the store."""
        store = open_store(self.path, environ=self.environ)
        return store._replace(objects=_keep_objects(store.objects, self.path))

    def open_to_look(self) -> Store:
        """Return a store for reading threads; its settings stay as they were at its first use."""
        kept = self.kept
        if kept.opened is None or kept.pid != os.getpid():
            kept.opened, kept.pid = self.open(), os.getpid()
        return kept.opened

    @contextmanager
    def writing(self) -> Iterator[Store]:
        """Open the store for a command that writes, and follow up, also if the command fails."""
        store = self.open()
        try:
            yield store
        finally:
            self.follow_up(store)

    def follow_up(self, store: Store) -> None:
        """Announce what was recorded to `uwf.onEvent`, and pack the store if that is due."""
        problem = follow_up(store, self.environ)
        if problem is not None:
            # The call is done, and a library prints nothing.
            debug("0NP9XCKZ", "a listener failed", problem=problem)


class _Kept(threading.local):
    """The objects of the store that a Python thread used last."""

    key: tuple[object, ...] = ()
    objects: ObjectStore | None = None


_KEPT = _Kept()


def _keep_objects(opened: ObjectStore, git_dir: str) -> ObjectStore:
    """Return the objects that this Python thread has open at *git_dir*, else *opened*."""
    folder = os.path.join(git_dir, "objects")
    stamp = read_stamp(folder)
    # Another store may have been made in its place, and alternates are read once. A forked child
    # shares the place of reading in open packs with its parent.
    place = None if stamp is None else (stamp.device, stamp.inode)
    key = (git_dir, os.getpid(), place, read_stamp(os.path.join(folder, "info", "alternates")))
    kept = _KEPT.objects
    if not isinstance(kept, DurableObjects) or _KEPT.key != key:
        _KEPT.key, _KEPT.objects = key, opened
        return opened
    if isinstance(opened, DurableObjects):
        kept.durable = opened.durable
    return kept


def to_path(given: str | os.PathLike[str] | None) -> str | None:
    """Return the text of a path; None if there is none."""
    return None if given is None else os.fspath(given)


def checked_clock(now_ms: Callable[[], int]) -> Callable[[], int]:
    """Return *now_ms*, which then raises ``WrongArgument`` if it returns no time."""

    def read() -> int:
        now: object = now_ms()
        if not isinstance(now, int) or isinstance(now, bool) or not 0 <= now < _LAST_MS:
            raise WrongArgument("TaskRuntime(now_ms=…)", "it returns whole milliseconds since 1970")
        return now

    return read


TaskState = Status | Literal["running"]
"""``running`` is never stored: a process works on the task now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskWaiting:
    """What a task waits for."""

    role: str
    until: int | None
    """When the usage limit ends that an agent hit; None: the task waits for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBranch:
    """A branch of a task: a task of its own, which ``TaskRuntime.task`` returns."""

    task_id: str
    number: int
    """Its place among the branches, from 0."""

    label: str
    """The name of its node; of an item, the name of the map."""

    status: str
    """As ``TaskStatus.status``; ``damaged`` if it cannot be read."""

    depth: int
    """How many steps it has taken."""

    error: str | None
    """Why its newest attempt failed, if no step has been taken since."""

    branches: tuple["TaskBranch", ...]
    """Its own, if it has split itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """The status and state of a task at one moment.

    ``prompt``, ``current_node``, ``next``, ``last_update_time`` and ``document`` take more reading,
    which is done when one of them is first asked for, of the task as it was at that moment; it
    raises ``StoreDamaged`` if that cannot be read.
    """

    task_id: str
    workflow_name: str
    workflow: str
    """The hash of its workflow version."""

    status: TaskState
    task_status: str
    """The status in the words of seed 004: ``pending`` for ready, ``cancelled`` for killed."""

    depth: int
    """How many steps there are."""

    parent_task_id: str | None
    """The task whose agent started this one, or of which this one is a branch."""

    head: str
    """The hash of the newest step."""

    state: Mapping[str, Any]
    start_time: int
    waiting: TaskWaiting | None
    usage: Mapping[str, Any]
    """The usage that its agents reported, summed, with those of the branches that it has now."""

    _present: ThreadState = field(repr=False, compare=False)
    _read_document: Callable[[], Mapping[str, Any]] = field(repr=False, compare=False)

    @property
    def document(self) -> Mapping[str, Any]:
        """The document of `uwf thread show`: agents, limits, the newest step, the question."""
        return self._read_document()

    @property
    def prompt(self) -> str:
        """What the task is to do."""
        return cast("str", self.document["prompt"])

    @property
    def last_node(self) -> str | None:
        """The role, or node, of the newest step; None before the first."""
        if self._present.at is not None:
            return cast("str", self.document["lastNode"])
        return None if self._present.role == START else self._present.role

    @property
    def is_branch(self) -> bool:
        """Whether this is a branch of ``parent_task_id``."""
        return self.parent_task_id is not None and "branchOf" in self.document

    @property
    def branches(self) -> tuple[TaskBranch, ...]:
        """The branches that it has now; empty if it has none, or has joined them."""
        return _read_branches(self.document.get("branches", []))

    @property
    def held_by(self) -> tuple[str, ...]:
        """What keeps it from going on: branches, a task around it, a limit, a problem."""
        return tuple(map(_describe_held, self.document.get("heldBy", [])))

    @property
    def current_node(self) -> str | None:
        """The role at work, or whose turn it is; None if no role is left, or it is undecidable.

        In a workflow of containers the node: an agent's, or one that runs branches.
        """
        return cast("str | None", self.document["currentNode"])

    @property
    def current_iteration(self) -> int | None:
        """Which turn of that role this is, from 1; in containers the pass of the loop around it."""
        return cast("int | None", self.document["currentIteration"])

    @property
    def next(self) -> str | None:
        """The role that takes the next step, or ``$END``; None after the end."""
        return cast("str | None", self.document["next"])

    @property
    def task_depth(self) -> int:
        """How deep the task is nested: 0, or one deeper than its parent."""
        return 0 if self.parent_task_id is None else cast("int", self.document["threadDepth"])

    @property
    def last_update_time(self) -> int:
        """When it last changed."""
        return cast("int", self.document["lastUpdateTime"])

    @property
    def end_time(self) -> int | None:
        """When it ended; None before that."""
        return self.last_update_time if self.status in ENDED else None

    @property
    def error(self) -> str | None:
        """Why the newest attempt failed, or the newest work was rejected; None if it went on."""
        if self._present.last_attempt is None and self._present.tried is None:
            return None
        error = self.document["error"]
        return None if error is None else cast("str", error["message"])


def query_task(place: Place, task_id: str) -> TaskStatus:
    """Read the status of a task: of one at rest, one commit and its now.json, without a lock.

    Raises:
        NoSuchThread, NotAStore: it is gone.
        StoreDamaged: it cannot be read.
    """
    try:
        return _read_status(place, place.open_to_look(), task_id)
    except UwfError:
        # The store may have been repaired or removed since it was opened.
        return _read_status(place, place.open(), task_id)


def _read_status(place: Place, store: Store, task_id: str) -> TaskStatus:
    moment = read_moment(store, get_head(store, ThreadId(task_id)))
    record = moment.snapshot.record
    present = moment.snapshot.get_present()
    waiting = present.waiting
    # Most have no branches, and nothing else is read for them.
    spent = present if present.split is None else read_spent(store, moment.snapshot, present)
    return TaskStatus(
        task_id=record.thread,
        workflow_name=record.workflow_name,
        workflow=record.workflow,
        status=cast("TaskState", moment.status),
        task_status=TASK_WORDS.get(moment.status, moment.status),
        depth=record.depth,
        parent_task_id=record.parent_thread,
        head=record.node,
        state=present.state,
        start_time=present.started_at,
        waiting=None if waiting is None else TaskWaiting(role=waiting.role, until=waiting.until),
        usage=spent.usage,
        _present=present,
        _read_document=cache(lambda: freeze(view_moment(place.open(), moment).document)),
    )


def _read_branches(rows: list[dict[str, Any]]) -> tuple[TaskBranch, ...]:
    return tuple(
        TaskBranch(
            task_id=row["thread"],
            number=row["number"],
            label=row["label"],
            status=row["status"],
            depth=row.get("depth", 0),
            error=row.get("error"),
            branches=_read_branches(row.get("branches", [])),
        )
        for row in rows
    )


def _describe_held(held: dict[str, Any]) -> str:
    error = f": {held['error']}" if "error" in held else ""
    return f"{held['thread']} {held['status']}{error}"


# What `step`, `run` and `run_in_background` return.


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStep:
    """A task after a step."""

    task_id: str
    status: TaskState
    role: str | None
    """The role that took the step or waits for a person; None when the task ended."""

    next: str | None
    """The role that takes the next step, or ``$END``; None after the end."""

    head: str
    """The hash of the newest step."""

    depth: int
    """How many steps there are."""

    said: str
    """What happened, in one line."""

    files: str | None = None
    """The commits of the project's files before and after the step, ``<before>..<after>``; None if
    it changed none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFiles:
    """The files of the project that changed between two commits of `refs/uwf/work/<task>`."""

    repository: str
    """The work tree of the project."""

    before: str
    after: str
    changed: Mapping[str, tuple[int | None, int | None]]
    """Path → lines added, lines removed; None for a binary file."""

    left_out: tuple[str, ...] = ()
    """What is not recorded, each with its reason."""


OnStep = Callable[[TaskStep], None]
"""Called after each step of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRun:
    """A task after it was driven."""

    task_id: str
    status: TaskState
    stopped: StoppedBy
    """Why the run ended."""

    steps: int
    """How many steps were taken."""

    last: TaskStep
    waiting: TaskWaiting | None
    failure: AgentFailed | None
    """Why the last attempt failed, if that stopped the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundRun:
    """A task that a background process drives."""

    task_id: str
    pid: int
    log: str
    """The file that has its output."""


def build_task_step(store: Store, stepped: ThreadResult) -> TaskStep:
    """Convert a ThreadResult of a thread in *store*."""
    tip = read_snapshot(store, stepped.commit)
    return TaskStep(
        task_id=stepped.thread,
        status=stepped.status,
        role=stepped.role,
        next=find_next_move(tip).role,
        head=stepped.head,
        depth=stepped.depth,
        said=stepped.said,
        files=tip.record.files,
    )


def build_task_files(found: FilesAt) -> TaskFiles:
    """Convert what is recorded of the files of a thread."""
    document = view_files(found)
    return TaskFiles(
        repository=document["repository"],
        before=found.before,
        after=found.after,
        changed={row["path"]: (row["added"], row["removed"]) for row in document["changed"]},
        left_out=tuple(document["leftOut"]),
    )


def build_task_run(store: Store, driven: Driven) -> TaskRun:
    """Convert a Driven of a thread in *store*."""
    waiting = driven.waiting
    return TaskRun(
        task_id=driven.last.thread,
        status=driven.last.status,
        stopped=driven.stopped,
        steps=driven.steps,
        last=build_task_step(store, driven.last),
        waiting=None if waiting is None else TaskWaiting(role=waiting.role, until=waiting.until),
        failure=driven.failure,
    )


def build_watcher(place: Place, store: Store, on_step: OnStep | None) -> Watcher:
    """Return a watcher of a drive that follows up at each event and calls *on_step*."""

    def step(stepped: ThreadResult) -> None:
        place.follow_up(store)
        if on_step is not None:
            on_step(build_task_step(store, stepped))

    def announce(*_facts: object) -> None:
        place.follow_up(store)

    return Watcher(step, announce, announce, announce)


# Events.


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEvent:
    """An event of a task."""

    id: str
    """The same on every machine; ``events(since=id)`` yields the events after it."""

    type: EventType
    task_id: str
    parent_task_id: str | None
    """The task whose agent started this one, or of which it is a branch."""

    timestamp: int
    """Milliseconds since 1970; whole seconds if the event has no node of its own, as a kill."""

    payload: Mapping[str, Any]
    """``nodeId``, ``nodeName``, ``iteration``, ``error``, ``state``, ``branches``: what applies."""

    document: Mapping[str, Any]
    """The whole event, as `uwf events` prints it."""


def walk_events(
    place: Place,
    task_id: str | None = None,
    *,
    since: str | None,
    follow: bool,
    with_state: bool = False,
) -> Iterator[TaskEvent]:
    """Yield events, oldest first: of one task or of all, after the event or commit *since*.

    With *follow*, wait for new events: of one task until it ends; without *since* from now on.
    *with_state* puts the task's state after each event into its payload.

    Raises:
        NoSuchThread, NotAThreadId, Refused: no task is meant, or several are.
        BadUsage, NoSuchEvent: there is no event *since*.
    """
    store = place.open()
    begin = None if since is None else parse_event_id(since)
    thread = None if task_id is None else resolve_thread(store, task_id)
    request = EventsRequest(thread, begin, from_now=follow and begin is None)
    options = EventOptions(with_state=with_state, secrets=find_secrets(place.environ))

    def pass_over(damage: StoreDamaged) -> None:
        # A query of the task raises the error.
        debug("8NKHKKX6", "events of a damaged thread", problem=damage.message)

    stream = EventStream(store, request, options, pass_over)
    while True:
        for event in stream.read():
            yield TaskEvent(
                id=event["id"],
                type=event["type"],
                task_id=event["taskId"],
                parent_task_id=event.get("parentTaskId"),
                timestamp=event["timestamp"],
                payload=event["payload"],
                document=freeze(event),
            )
        if not follow or stream.is_over:
            return
        time.sleep(0.2)
