"""Read the events of one commit of a thread; keys are masked.

The same commit has the same events on every machine.
"""

from collections.abc import Container, Mapping
from typing import Any, NamedTuple

from uwf_git.commands.turn.choose_agent import PERSON
from uwf_git.engine.events import TransitionFacts, TurnStarted, build_events, enter_event
from uwf_git.engine.key_shapes import mask_keys_in
from uwf_git.engine.masking import mask_value
from uwf_git.model.builtin import ATTEMPT, SIGNAL, STEP, WORKFLOW
from uwf_git.model.event_rules import carries
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import find_reference
from uwf_git.model.thread import ThreadState
from uwf_git.model.transition import START
from uwf_git.store.objects.commit import DamagedCommit
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.history import find_turn_start
from uwf_git.store.threads.snapshot import Snapshot, get_typed, read_snapshot

_SIGNAL_FIELDS = ("action", "workflow", "agentBinding", "limits")


class EventOptions(NamedTuple):
    """What events contain."""

    with_state: bool = False
    """Whether they have the thread's state after the transition."""

    secrets: tuple[str, ...] = ()
    """The texts to mask, besides all that looks like a key."""


def read_events(
    store: Store, commit: Oid, options: EventOptions, *, entered: Container[Oid] = ()
) -> list[dict[str, Any]]:
    """Return the events of the transition *commit*, in order.

    The ``node:enter`` of a turn that began after one of the commits *entered* is left out: it was
    reported when the turn began. The workflow's ``config`` may add the state to each event
    (``stateSnapshot``), or leave out progress (``eventEmit: false``).

    Raises:
        StoreDamaged: the commit, or a node that it refers to, cannot be read.
    """
    snapshot = read_snapshot(store, commit)
    config = _read_config(snapshot)
    happened = _read(store, snapshot)
    if happened.turn is not None and happened.turn.started_after in entered:
        happened = happened._replace(is_new_turn=False)
    if not (options.with_state or config.get("stateSnapshot")):
        happened = happened._replace(state=None)
    quiet = {"workflow:progress"} if config.get("eventEmit") is False else set()
    events = (event for event in build_events(happened) if event["type"] not in quiet)
    return [_masked(event, options) for event in events]


def _read_config(snapshot: Snapshot) -> Mapping[str, Any]:
    config: Mapping[str, Any] = get_typed(snapshot, snapshot.record.workflow, WORKFLOW).payload.get(
        "config", {}
    )
    return config


def read_enter(turn: TurnStarted, options: EventOptions) -> dict[str, Any]:
    """Return the event that *turn* has begun."""
    return _masked(enter_event(turn), options)


def describe_turn(
    snapshot: Snapshot, *, role: str, agent: str | None, started_ms: int
) -> TurnStarted:
    """Describe the turn of *role* that began after *snapshot*."""
    present = snapshot.get_present()
    return TurnStarted(
        started_after=snapshot.commit.oid,
        record=snapshot.record,
        role=role,
        agent=agent,
        started_ms=started_ms,
        iteration=present.visits.get(role, 0) + 1,
        attempt=present.attempts + 1,
    )


def _masked(event: dict[str, Any], options: EventOptions) -> dict[str, Any]:
    masked: dict[str, Any] = mask_keys_in(mask_value(event, options.secrets))
    return masked


def _read(store: Store, snapshot: Snapshot) -> TransitionFacts:
    present = snapshot.get_present()
    record = snapshot.record
    happened = TransitionFacts(
        commit=snapshot.commit.oid,
        record=record,
        time_ms=snapshot.recorded_ms(snapshot.get_head_node()),
        subject=snapshot.subject,
        where=_position(present),
        state=present.state,
        has_failed="failed" in {record.status, present.paused_from},
    )
    if carries(record.event, "agent"):
        return _read_turn(store, snapshot, happened, present.last_attempt)
    if record.event == "start":
        return happened._replace(time_ms=present.started_at)
    if record.event == "wait":
        return _read_wait(store, snapshot, happened)
    if record.signal is not None:
        return _read_signal(snapshot, happened, record.signal)
    reason = snapshot.body
    if record.event == "kill":
        why = f"killed: {reason}" if reason else "killed"
        return happened._replace(reason=reason, error=why)
    return happened._replace(reason=reason, has_failed=False)


def _position(present: ThreadState) -> tuple[str, int] | None:
    role = present.role
    return None if role == START else (role, present.visits.get(role, 0))


def _read_turn(
    store: Store, snapshot: Snapshot, happened: TransitionFacts, last_attempt: NodeHash | None
) -> TransitionFacts:
    record = snapshot.record
    if record.role is None or not snapshot.commit.parents:
        raise DamagedCommit(snapshot.commit.oid, "is a turn without a role")
    if record.event == "attempt":
        if last_attempt is None:
            raise DamagedCommit(snapshot.commit.oid, "is an attempt without an Attempt node")
        node = get_typed(snapshot, last_attempt, ATTEMPT)
        error = node.payload["error"]
        more = {"errorKind": error["kind"]}
        more |= {
            name: node.payload[name] for name in ("exitCode", "resetAt") if name in node.payload
        }
        happened = happened._replace(error=error["message"], more=more)
    else:
        node = get_typed(snapshot, record.node, STEP)
        happened = happened._replace(has_failed=False)
    base = read_base(store, snapshot)
    started_ms = node.payload.get("startedAt", happened.time_ms)
    turn = describe_turn(base, role=record.role, agent=record.agent, started_ms=started_ms)
    was_waiting = base.record.event == "wait" and base.record.role == record.role
    is_answer = record.event == "answer"
    return happened._replace(
        turn=turn,
        is_new_turn=not (was_waiting and is_answer),
        time_ms=node.timestamp if "startedAt" in node.payload else happened.time_ms,
    )


def read_base(store: Store, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot after which the turn began that *snapshot* ended (not a first one)."""
    before = read_snapshot(store, snapshot.commit.parents[0])
    oid = find_turn_start(store, before)
    return before if oid == before.commit.oid else read_snapshot(store, oid)


def _read_wait(store: Store, snapshot: Snapshot, happened: TransitionFacts) -> TransitionFacts:
    role = snapshot.record.role
    if role is None or not snapshot.commit.parents:
        raise DamagedCommit(snapshot.commit.oid, "waits without a role")
    base = read_base(store, snapshot)
    turn = describe_turn(base, role=role, agent=PERSON, started_ms=happened.time_ms)
    question = {"question": snapshot.body} if snapshot.body else {}
    return happened._replace(turn=turn, more=question)


def _read_signal(
    snapshot: Snapshot, happened: TransitionFacts, signal: NodeHash
) -> TransitionFacts:
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


def _plain(value: Any) -> Any:
    """Return a value of a Signal with each reference replaced by the node's name."""
    target = find_reference(value)
    if target is not None:
        return target
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return value
