"""False amendments: each lie is reported with its commit."""

from typing import Any

import pytest
from commands.forging import Change, also, forge, holds, place, points, says, troubles
from commands.world import DEMO, World

from uwf_git.commands.turn.choose_agent import build_agent
from uwf_git.model.builtin import SIGNAL, reference
from uwf_git.model.event_folds import Cause
from uwf_git.model.event_rules import apply_event
from uwf_git.model.names import ThreadId
from uwf_git.model.node import Node, build_node
from uwf_git.store.objects.commit import encode_json
from uwf_git.store.threads.history import read_snapshot, read_standing

LONGER = (
    DEMO.replace("name: demo", "name: longer")
    .replace("to: $END}", "to: editor}\n  - {from: editor, to: $END}")
    .replace("moderator:", "  editor: {systemPrompt: Edit.}\nmoderator:")
)


def moved(world: World) -> ThreadId:
    """Return a thread that took a step, and then moved to `longer`."""
    thread = world.begun()
    world.put(LONGER)
    world.step(thread)
    world.amend(thread, workflow="longer")
    return thread


def told(world: World, thread: ThreadId, change: Change) -> list[str]:
    """Forge the newest commit, and return the problems found."""
    oids = forge(world.store, f"refs/threads/{thread}", {-1: change})
    found = troubles(world)
    assert {each.commit for each in found} <= {oids[-1]}
    return [each.message for each in found]


def asks(world: World, thread: ThreadId, payload: dict[str, Any], *nodes: Node) -> Change:
    """Let the newest commit hold another Signal, and name it; now.json follows."""
    snapshot = world.snapshot(thread)
    assert snapshot.record.cause is not None
    signal = build_node(SIGNAL, {"action": "amend", **payload}, timestamp=1)
    before = read_snapshot(world.store, snapshot.commit.parents[0])
    present = apply_event(read_standing(before), "amend", Cause(signal)).state
    return also(
        says(f"Uwf-Cause: {snapshot.record.cause}", f"Uwf-Cause: {signal.hash}"),
        *(
            holds(world.store, place(each.hash), encode_json(_file(each)))
            for each in (signal, *nodes)
        ),
        holds(world.store, "now.json", encode_json(present.as_document())),
    )


def _file(node: Node) -> dict[str, Any]:
    return {"type": node.type, "payload": node.payload, "timestamp": node.timestamp}


def test_position_that_is_gone_is_reported(world: World) -> None:
    thread = moved(world)
    snapshot = world.snapshot(thread)
    payload = dict(snapshot.get_node(snapshot.record.workflow).payload)
    payload["roles"] = {"editor": payload["roles"]["editor"]}
    other = build_node(snapshot.get_node(snapshot.record.workflow).type, payload, timestamp=1)

    assert told(
        world,
        thread,
        also(
            asks(world, thread, {"workflow": reference(other.hash)}, other),
            says(f"Uwf-Workflow: {snapshot.record.workflow}", f"Uwf-Workflow: {other.hash}"),
        ),
    ) == ["the thread stands at 'writer', which is no role of the new workflow"]


def test_invalid_workflow_is_reported(world: World) -> None:
    thread = moved(world)
    snapshot = world.snapshot(thread)
    agent = build_agent({"command": "x"}, timestamp=1)

    messages = told(
        world,
        thread,
        also(
            asks(world, thread, {"workflow": reference(agent.hash)}, agent),
            says(f"Uwf-Workflow: {snapshot.record.workflow}", f"Uwf-Workflow: {agent.hash}"),
        ),
    )

    assert f"node {agent.hash} is not a workflow that this uwf can read" in messages
    assert any("where a node of type Workflow belongs" in each for each in messages)


def test_invalid_agent_is_reported(world: World, thread: ThreadId) -> None:
    world.amend(thread, "writer=x")
    workflow = world.snapshot(thread).record.workflow

    assert told(
        world, thread, asks(world, thread, {"agentBinding": {"writer": reference(workflow)}})
    )[0].endswith(f"{workflow} where a node of type AgentConfig belongs")


@pytest.mark.parametrize("limits", [{"maxSteps": 0}, {"maxCost": 0}, {"maxExecutionTime": 2**50}])
def test_invalid_limit_is_reported(limits: dict[str, Any], world: World, thread: ThreadId) -> None:
    world.amend(thread, limits={"maxSteps": 3})

    (message,) = told(world, thread, asks(world, thread, {"limits": limits}))

    assert message.startswith(f"the limit {next(iter(limits))} must be a ")


@pytest.mark.parametrize(
    ("cost", "said", "problems"),
    [
        (1e-7, "0.0", 0),
        (1e-7, "1e-07", 0),
        (0.1234567, "0.123457", 0),
        (0.1234567, "0.1234567", 0),
        (0.1234567, "0.12346", 1),
    ],
)
def test_amount_that_older_versions_took_or_wrote_is_no_trouble(
    cost: float, said: str, problems: int, world: World, thread: ThreadId
) -> None:
    world.amend(thread, limits={"maxCost": 0.000001})
    lost = points(world.store, place(world.snapshot(thread).record.cause or ""), None)
    old = asks(world, thread, {"limits": {"maxCost": cost}})

    found = told(world, thread, also(old, lost, says("is 1e-06", f"is {said}")))

    assert len(found) == problems, found
