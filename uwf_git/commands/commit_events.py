"""Read the events of a commit of a thread, the same on every machine; keys are masked."""

import json
import shlex
from collections.abc import Container, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from uwf_git.agents.command_line import split_command
from uwf_git.commands.split import find_container, find_node, label_branch, list_new_passes
from uwf_git.commands.turn.flow import count_own
from uwf_git.commands.turn.next_move import PERSON
from uwf_git.engine.events import Node as EventNode
from uwf_git.engine.events import TransitionFacts, TurnStarted, build_events, enter_events
from uwf_git.engine.flow_state import describe_rejection
from uwf_git.engine.masking import find_secrets, mask_keys_in, mask_value
from uwf_git.errors import UwfError
from uwf_git.model.builtin import ATTEMPT, SIGNAL, STEP, WORKFLOW, find_reference
from uwf_git.model.event_folds import describe_step
from uwf_git.model.event_rules import carries, signal_of
from uwf_git.model.names import NodeHash, Oid
from uwf_git.model.node import Node
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import START
from uwf_git.store.git.program import run_listener
from uwf_git.store.nodes import find_blob
from uwf_git.store.objects.commit import build_message, damaged_commit, subject_of
from uwf_git.store.store import Store
from uwf_git.store.threads.history import Snapshot, check_type, get_typed, read_snapshot
from uwf_git.store.trust import describe_command, is_set_by_store, is_trusted

_SIGNAL_FIELDS = ("action", "workflow", "agentBinding", "limits")

_RECENT = 16
"""How many commits a reader keeps, each with its thread's state."""


class EventOptions(NamedTuple):
    with_state: bool = False

    secrets: tuple[str, ...] = ()
    """The texts to mask, besides all that looks like a key."""


class Moment:
    """A commit of a thread, whose state is read once."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    @cached_property
    def present(self) -> ThreadState:
        return self.snapshot.get_present()


class EventReader:
    """Reads the events of transitions, and keeps what the next transition needs again."""

    def __init__(self, store: Store, options: EventOptions) -> None:
        self._store, self._options = store, options
        self._recent: dict[Oid, Moment] = {}
        self._configs: dict[tuple[object, NodeHash], Mapping[str, Any]] = {}

    def read(self, commit: Oid, *, entered: Container[Oid] = ()) -> list[dict[str, Any]]:
        """Return the events of the transition *commit*, in order.

        The ``node:enter`` of a turn that began after a commit in *entered* is left out: it was
        reported when the turn began. The workflow's ``config`` may add the state to each event
        (``stateSnapshot``), or leave out progress (``eventEmit: false``).
        """
        moment = self._look(commit)
        happened = self._read(moment)
        if happened.turn is not None and happened.turn.started_after in entered:
            happened = happened._replace(is_new_turn=False)
        if not self._wants_state(moment.snapshot):
            happened = happened._replace(state=None)
        is_quiet = self._read_config(moment.snapshot).get("eventEmit") is False
        quiet = {"workflow:progress"} if is_quiet else set()
        events = (event for event in build_events(happened) if event["type"] not in quiet)
        return [_masked(event, self._options) for event in events]

    def read_enter(self, turn: TurnStarted) -> list[dict[str, Any]]:
        """Return the events that *turn* has begun: passes of loops that begin with it, and it."""
        told = self._add_state(turn, self._look(Oid(turn.started_after)))
        return [_masked(event, self._options) for event in enter_events(told)]

    def _add_state(self, turn: TurnStarted, base: Moment) -> TurnStarted:
        """Add the state as *turn* began, if it is wanted: the same while it is played and later."""
        wants = self._wants_state(base.snapshot)
        return turn._replace(state=base.present.state) if wants else turn

    def _wants_state(self, snapshot: Snapshot) -> bool:
        config = self._read_config(snapshot)
        return self._options.with_state or bool(config.get("stateSnapshot"))

    def _look(self, commit: Oid) -> Moment:
        """Return a commit: of several threads in turn, the next turns began after recent ones."""
        moment = self._recent.pop(commit, None) or Moment(read_snapshot(self._store, commit))
        self._recent[commit] = moment
        if len(self._recent) > _RECENT:
            del self._recent[next(iter(self._recent))]
        return moment

    def _read_config(self, snapshot: Snapshot) -> Mapping[str, Any]:
        name = snapshot.record.workflow
        # Not by its name alone, which can be forged.
        key = find_blob(snapshot.objects, snapshot.nodes, name), name
        if key not in self._configs:
            if len(self._configs) == _RECENT:
                self._configs.clear()
            self._configs[key] = get_typed(snapshot, name, WORKFLOW).payload.get("config", {})
        return self._configs[key]

    def _read(self, moment: Moment) -> TransitionFacts:
        snapshot, present = moment.snapshot, moment.present
        record = snapshot.record
        head = snapshot.get_head_node()
        happened = TransitionFacts(
            commit=snapshot.commit.oid,
            record=record,
            time_ms=snapshot.recorded_ms(head),
            subject=snapshot.subject,
            where=_position(snapshot, present),
            state=present.state,
            has_failed="failed" in {record.status, present.paused_from},
            is_branch=snapshot.get_trunk() is not None,
        )
        if carries(record.event, "agent"):
            return self._read_turn(snapshot, happened, head, present.last_attempt)
        if record.event == "start":
            return happened._replace(time_ms=present.started_at)
        if record.event == "wait":
            role = snapshot.record.role
            if role is None or not snapshot.commit.parents:
                raise damaged_commit(snapshot.commit.oid, "waits without a role")
            base = self._read_base(snapshot)
            turn = describe_turn(
                base, role=role, agent=PERSON, started_ms=happened.time_ms, at=snapshot.record.at
            )
            question = {"question": snapshot.body} if snapshot.body else {}
            return happened._replace(turn=self._add_state(turn, base), more=question)
        if record.event in {"split", "join"}:
            return _read_branches(self._store, snapshot, happened)
        signal = signal_of(record)
        if signal is not None:
            node = get_typed(snapshot, signal, SIGNAL)
            payload = node.payload
            more = {name: _plain(payload[name]) for name in _SIGNAL_FIELDS if name in payload}
            if "patch" in payload:
                # The names alone: the values are state, which only `--state` shows.
                more["patched"] = sorted(payload["patch"])
            return happened._replace(
                time_ms=max(happened.time_ms, snapshot.recorded_ms(node)),
                reason=payload.get("reason", ""),
                more=more,
                has_failed=False,
            )
        reason = snapshot.body
        if record.event == "kill":
            why = f"killed: {reason}" if reason else "killed"
            return happened._replace(reason=reason, error=why)
        return happened._replace(reason=reason, has_failed=False)

    def _read_turn(
        self,
        snapshot: Snapshot,
        happened: TransitionFacts,
        head: Node,
        last_attempt: NodeHash | None,
    ) -> TransitionFacts:
        record = snapshot.record
        if record.role is None or not snapshot.commit.parents:
            raise damaged_commit(snapshot.commit.oid, "is a turn without a role")
        if record.event == "attempt":
            if last_attempt is None:
                raise damaged_commit(snapshot.commit.oid, "is an attempt without an Attempt node")
            node = get_typed(snapshot, last_attempt, ATTEMPT)
            error = node.payload["error"]
            more = {"errorKind": error["kind"]}
            more |= {
                name: node.payload[name] for name in ("exitCode", "resetAt") if name in node.payload
            }
            happened = happened._replace(error=error["message"], more=more)
        else:
            node = check_type(head, STEP)
            if happened.subject.removeprefix(f"{record.role}: ").startswith(("{", "[")):
                # It was made of the meta, whose members have names, and may have been cut.
                said = describe_step(_masked(node.payload["meta"], self._options), "")
                subject = subject_of(build_message(record.role, said, trailers=()))
                happened = happened._replace(subject=subject)
            if happened.has_failed:
                # Its verdict has ended the last try.
                told = describe_rejection(node.payload["role"], node.payload["meta"])
                happened = happened._replace(error=told, more={"errorKind": "rejected"})
        base = self._read_base(snapshot)
        started_ms = node.payload.get("startedAt", happened.time_ms)
        turn = describe_turn(
            base, role=record.role, agent=record.agent, started_ms=started_ms, at=record.at
        )
        before = base.snapshot.record
        was_waiting = before.event == "wait" and before.role == record.role
        is_answer = record.event == "answer"
        return happened._replace(
            turn=self._add_state(turn, base),
            is_new_turn=not (was_waiting and is_answer),
            time_ms=node.timestamp if "startedAt" in node.payload else happened.time_ms,
        )

    def _read_base(self, snapshot: Snapshot) -> Moment:
        """Return the commit after which the turn began that *snapshot* ended (not a first one)."""
        before = self._look(snapshot.commit.parents[0])
        oid = before.snapshot.turn_start
        return before if oid == before.snapshot.commit.oid else self._look(oid)


def describe_turn(
    moment: Moment, *, role: str, agent: str | None, started_ms: int, at: str | None = None
) -> TurnStarted:
    """Describe the turn of *role*, at the place *at* of a flow, that began after *moment*."""
    present, snapshot = moment.present, moment.snapshot
    return TurnStarted(
        started_after=snapshot.commit.oid,
        record=snapshot.record,
        role=role,
        agent=agent,
        started_ms=started_ms,
        node=find_node(snapshot, at)
        or EventNode(role, role, count_own(snapshot, present).get(role, 0) + 1),
        attempt=present.begin_tries(at).attempts + 1,
        at=at,
        passes=list_new_passes(snapshot, present, at),
    )


def _masked(value: Any, options: EventOptions) -> Any:
    return mask_keys_in(mask_value(value, options.secrets))


def _position(snapshot: Snapshot, present: ThreadState) -> EventNode | None:
    role = present.role
    return find_node(snapshot, present.at) or (
        None if role == START else EventNode(role, role, count_own(snapshot, present).get(role, 0))
    )


def _read_branches(store: Store, snapshot: Snapshot, happened: TransitionFacts) -> TransitionFacts:
    """Return the facts of a split or a join: the node that splits the thread, and its branches."""
    at = snapshot.record.at
    before = read_snapshot(store, snapshot.commit.parents[0])
    is_begin = snapshot.record.event == "split"
    split = (snapshot if is_begin else before).get_present().split
    if split is None or at is None:
        raise damaged_commit(snapshot.commit.oid, "is about branches that the thread has not")
    container = find_container(before, at)
    node = find_node(before, at) or EventNode(container.label, container.label, 1)
    happened = happened._replace(where=node, has_failed=False)
    if is_begin:
        happened = happened._replace(passes=list_new_passes(before, before.get_present(), at))
    if container.kind == "workflow":
        return happened
    branches = [
        {"taskId": child.thread, "nodeId": label_branch(container, number)}
        for number, child in enumerate(split.children)
    ]
    if not is_begin:
        results = snapshot.get_head_node().payload["meta"]["branches"]
        branches = [{**each, **result} for each, result in zip(branches, results, strict=True)]
    return happened._replace(branches=branches)


def _plain(value: Any) -> Any:
    """Return a value of a Signal with each reference replaced by the node's name."""
    target = find_reference(value)
    if target is not None:
        return target
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return value


# Announce events: run the listener of git config `uwf.onEvent` for each event of this process.
#
# Events of one process are announced in order, after the commit and without a lock: a listener may
# steer the thread. Fetched transitions are not announced; the process that made them has done that.
# A listener that the store's own config names runs only if the user trusts it, as `uwf config set`
# does. (`uwf.onReceive` announces pushes into a shared store.)

ON_EVENT = "uwf.onEvent"

TIMEOUT_S = 10.0


def announce_events(
    store: Store, environ: Mapping[str, str], *, timeout_s: float = TIMEOUT_S
) -> str | None:
    """Run the listener for each event of the transitions made through *store* since the last call.

    It gets one event as JSON on standard input and ``UWF_REPO`` in its environment, and runs in the
    store's directory. A listener that cannot be run, or hangs, is not run again in this call.
    Return in one line what went wrong; None without a failure or a listener.
    """
    moved = store.own_transitions.take()
    command = store.config.get(ON_EVENT)
    if not command or not moved:
        return None
    listener = describe_command(ON_EVENT, command)
    if is_set_by_store(store, ON_EVENT) and not is_trusted(store, listener, store.path):
        return (
            f"{ON_EVENT}: this store's config names a command that is not trusted: {command}; "
            f"read it; if it may run: `uwf config set onEvent {shlex.quote(command)}`"
        )
    listener_environ = {**environ, "UWF_REPO": store.path}
    problems: list[str] = []
    left = 0
    try:
        argv = split_command(command)
        reader = EventReader(store, EventOptions(secrets=find_secrets(environ)))
        events = [event for commit in moved for event in reader.read(commit)]
        left = len(events)
        for event in events:
            given = json.dumps(event).encode() + b"\n"
            ran = run_listener(
                argv, listener_environ, given=given, cwd=store.path, timeout_s=timeout_s
            )
            left -= 1
            if ran.status != 0:
                detail = f": {ran.last_line}" if ran.last_line else ""
                problems.append(f"{argv[0]} ended with status {ran.status}{detail}")
    except (UwfError, OSError) as error:
        problems.append(str(error))
    if not problems:
        return None
    more = f" (and {len(problems) - 1} more like it)" if len(problems) > 1 else ""
    rest = f"; {left - 1} more events were not announced" if left > 1 else ""
    return f"{ON_EVENT}: {problems[0]}{more}{rest}"
