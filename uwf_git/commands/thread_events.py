"""Thread events: what a commit of a thread tells, read from it.

Owns: which nodes of a transition are looked at, and masking what looks like a key.
Knows nothing of: which commits are told, to whom, in what order.
Always true: the same commit gives the same events wherever and whenever it is read.
"""

from collections.abc import Container, Mapping
from typing import Any, NamedTuple

from uwf_git.commands.choose_agent import PERSON
from uwf_git.commands.typed_node import get_typed
from uwf_git.engine.events import Entered, Happened, build_events, enter_event
from uwf_git.engine.key_shapes import mask_keys_in
from uwf_git.engine.masking import mask_value
from uwf_git.model.builtin import ATTEMPT, SIGNAL, STEP, WORKFLOW
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import find_reference
from uwf_git.model.thread import STEPS, Present
from uwf_git.model.transition import START
from uwf_git.store.commit import DamagedCommit
from uwf_git.store.history import find_base
from uwf_git.store.refs import Oid
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store

_ASKED = ("action", "workflow", "agentBinding", "limits")


class Telling(NamedTuple):
    """How events are told."""

    with_state: bool = False
    """Whether the thread's state after each transition goes along."""

    secrets: tuple[str, ...] = ()
    """What is masked besides all that looks like a key."""


def read_events(
    store: Store, commit: Oid, telling: Telling, *, entered: Container[Oid] = ()
) -> list[dict[str, Any]]:
    """Give the events of the transition *commit*, in order.

    A turn that began after one of the commits *entered* was told of while it was played. The
    workflow's ``config`` may ask for the state with each event (``stateSnapshot``), or for none of
    progress (``eventEmit: false``).

    Raises:
        StoreDamaged: the commit, or what it refers to, cannot be read.
    """
    snapshot = read_snapshot(store, commit)
    config = _read_config(snapshot)
    happened = _read(store, snapshot)
    if happened.turn is not None and happened.turn.base in entered:
        happened = happened._replace(is_new_turn=False)
    if not (telling.with_state or config.get("stateSnapshot")):
        happened = happened._replace(state=None)
    quiet = {"workflow:progress"} if config.get("eventEmit") is False else set()
    told = (event for event in build_events(happened) if event["type"] not in quiet)
    return [_masked(event, telling) for event in told]


def _read_config(snapshot: Snapshot) -> Mapping[str, Any]:
    config: Mapping[str, Any] = get_typed(snapshot, snapshot.record.workflow, WORKFLOW).payload.get(
        "config", {}
    )
    return config


def read_enter(turn: Entered, telling: Telling) -> dict[str, Any]:
    """Give the event that *turn* has begun."""
    return _masked(enter_event(turn), telling)


def enter_turn(snapshot: Snapshot, *, role: str, agent: str | None, started_ms: int) -> Entered:
    """Describe the turn of *role* that began after *snapshot*."""
    present = snapshot.get_present()
    return Entered(
        base=snapshot.commit.oid,
        record=snapshot.record,
        role=role,
        agent=agent,
        started_ms=started_ms,
        iteration=present.visits.get(role, 0) + 1,
        attempt=present.attempts + 1,
    )


def _masked(event: dict[str, Any], telling: Telling) -> dict[str, Any]:
    masked: dict[str, Any] = mask_keys_in(mask_value(event, telling.secrets))
    return masked


def _read(store: Store, snapshot: Snapshot) -> Happened:
    present = snapshot.get_present()
    record = snapshot.record
    happened = Happened(
        commit=snapshot.commit.oid,
        record=record,
        time_ms=snapshot.recorded_ms(snapshot.get_head_node()),
        subject=snapshot.subject,
        where=_where(present),
        state=present.state,
        has_failed="failed" in {record.status, present.paused_from},
    )
    if record.event in STEPS or record.event == "attempt":
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


def _where(present: Present) -> tuple[str, int] | None:
    role = present.role
    return None if role == START else (role, present.visits.get(role, 0))


def _read_turn(
    store: Store, snapshot: Snapshot, happened: Happened, last_attempt: NodeHash | None
) -> Happened:
    record = snapshot.record
    if record.role is None or not snapshot.commit.parents:
        raise DamagedCommit(snapshot.commit.oid, "is a turn of nobody")
    if record.event == "attempt":
        if last_attempt is None:
            raise DamagedCommit(snapshot.commit.oid, "is an attempt, and has none")
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
    turn = enter_turn(base, role=record.role, agent=record.agent, started_ms=started_ms)
    is_asked = base.record.event == "wait" and base.record.role == record.role
    is_answer = record.event == "answer"
    return happened._replace(
        turn=turn,
        is_new_turn=not (is_asked and is_answer),
        time_ms=node.timestamp if "startedAt" in node.payload else happened.time_ms,
    )


def read_base(store: Store, snapshot: Snapshot) -> Snapshot:
    """Give where the turn began that *snapshot*, which is not a thread's first, has ended.

    Raises:
        StoreDamaged: it cannot be read.
    """
    before = read_snapshot(store, snapshot.commit.parents[0])
    oid = find_base(store, before)
    return before if oid == before.commit.oid else read_snapshot(store, oid)


def _read_wait(store: Store, snapshot: Snapshot, happened: Happened) -> Happened:
    role = snapshot.record.role
    if role is None or not snapshot.commit.parents:
        raise DamagedCommit(snapshot.commit.oid, "waits for nobody")
    base = read_base(store, snapshot)
    turn = enter_turn(base, role=role, agent=PERSON, started_ms=happened.time_ms)
    question = {"question": snapshot.body} if snapshot.body else {}
    return happened._replace(turn=turn, more=question)


def _read_signal(snapshot: Snapshot, happened: Happened, signal: NodeHash) -> Happened:
    node = get_typed(snapshot, signal, SIGNAL)
    payload = node.payload
    more = {name: _plain(payload[name]) for name in _ASKED if name in payload}
    if "patch" in payload:
        # What it changes to is state, and told as such.
        more["patched"] = sorted(payload["patch"])
    return happened._replace(
        time_ms=max(happened.time_ms, snapshot.recorded_ms(node)),
        reason=payload.get("reason", ""),
        more=more,
        has_failed=False,
    )


def _plain(value: Any) -> Any:
    """Give a value of a Signal with names of nodes in the place of references."""
    target = find_reference(value)
    if target is not None:
        return target
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return value
