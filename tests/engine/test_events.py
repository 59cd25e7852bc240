from typing import Any

import pytest

from uwf_git.engine.events import (
    LoopPass,
    Node,
    TransitionFacts,
    TurnStarted,
    build_events,
)
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.thread import Event, Status, TransitionRecord

BASE, COMMIT = "b" * 40, "c" * 40


def record(event: Event = "step", status: Status = "ready") -> TransitionRecord:
    return TransitionRecord(
        thread=ThreadId("01J00000000000000000000001"),
        event=event,
        status=status,
        node=NodeHash("ENXTKXNTS0831"),
        depth=1,
        workflow=NodeHash("31PY5YAKWQ9YD"),
        workflow_name="demo",
    )


WRITER = Node("writer", "writer", 2)
TURN = TurnStarted(BASE, record("start"), "writer", "uwf-mock", 1000, WRITER, attempt=1)


def told(event: Event, status: Status = "ready", **more: Any) -> list[dict[str, Any]]:
    facts = TransitionFacts(COMMIT, record(event, status), 3000, f"{event}: said", **more)
    return list(build_events(facts))


def types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


@pytest.mark.parametrize(
    ("event", "more", "expected"),
    [
        ("start", {}, ["workflow:start"]),
        ("start", {"is_branch": True}, ["workflow:progress"]),
        ("kill", {"is_branch": True}, ["workflow:progress"]),
        ("fork", {}, ["workflow:start"]),
        ("step", {"turn": TURN}, ["node:enter", "node:exit", "workflow:progress"]),
        ("answer", {"turn": TURN, "is_new_turn": False}, ["node:exit", "workflow:progress"]),
        ("attempt", {"turn": TURN}, ["node:enter", "node:exit", "workflow:progress"]),
        (
            "attempt",
            {"turn": TURN, "has_failed": True},
            ["node:enter", "node:exit", "workflow:error"],
        ),
        ("wait", {"turn": TURN}, ["node:enter", "workflow:progress"]),
        ("pause", {}, ["workflow:progress"]),
        ("end", {}, ["workflow:complete"]),
        ("kill", {}, ["workflow:error"]),
    ],
)
def test_each_transition_has_its_events(
    event: Event, more: dict[str, Any], expected: list[str]
) -> None:
    assert types(told(event, **more)) == expected


def test_event_is_reported_whole() -> None:
    assert told("step", turn=TURN, state={"n": 1})[1] == {
        "id": f"{COMMIT}-exit",
        "type": "node:exit",
        "taskId": "01J00000000000000000000001",
        "timestamp": 3000,
        "payload": {
            "nodeId": "writer",
            "nodeName": "writer",
            "iteration": 2,
            "durationMs": 2000,
            "state": {"n": 1},
        },
        "event": "step",
        "status": "ready",
        "role": None,
        "agent": None,
        "attempt": 1,
        "depth": 1,
        "node": "ENXTKXNTS0831",
        "workflow": "31PY5YAKWQ9YD",
        "workflowName": "demo",
        "forkedFrom": None,
        "parentThread": None,
        "commit": COMMIT,
        "subject": "step: said",
        "reason": None,
    }


LOOP = LoopPass(Node("review", "Until it is good", 3), 1)


def test_branches_that_run_at_once_begin_and_end_together() -> None:
    branches = [{"taskId": "x", "nodeId": "a"}]
    node = Node("checks", "checks", 1)

    begun = told("split", "split", where=node, passes=(LOOP,), branches=branches)
    joined = told("join", where=node, branches=branches)

    assert types(begun) == ["loop:iteration", "parallel:start", "workflow:progress"]
    assert types(joined) == ["parallel:complete", "workflow:progress"]
    assert begun[1]["payload"]["branches"] == branches
    assert [event["id"].partition("-")[2] for event in begun] == ["loop1", "parallel", "progress"]
