"""A peer may push nodes that are whole and do not belong where they stand."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from commands.world import World, read_thread

from uwf_git.commands.inspect.context import get_context
from uwf_git.commands.inspect.list import ListRequest, list_thread_rows
from uwf_git.commands.inspect.show import show_thread
from uwf_git.errors import UwfError
from uwf_git.model.builtin import STEP, reference
from uwf_git.model.event_folds import Words
from uwf_git.model.names import ThreadId
from uwf_git.model.node import build_node
from uwf_git.store.nodes import DamagedNode
from uwf_git.store.threads.history import NewCommit, record_next

Forge = Callable[[World, ThreadId], None]


def forged(*, cursor: str | None = None, event: Any = None, **refs: Any) -> Forge:
    """Add a commit that points at what does not belong there, as no uwf would write it."""

    def forge(world: World, thread: ThreadId) -> None:
        snapshot = world.snapshot(thread)
        start, present = snapshot.get_start().hash, snapshot.get_present()
        record, nodes = snapshot.record, []
        if "step" in refs:
            payload = snapshot.get_head_node().payload | {refs["step"]: reference(start)}
            nodes.append(build_node(STEP, payload, timestamp=1))
            record = record._replace(node=nodes[0].hash)
        if "agent" in refs:
            present = present._replace(binding=dict.fromkeys(present.binding, start))
        if "attempt" in refs:
            present = present._replace(attempts=1, last_attempt=start)
        if cursor is not None:
            present = present._replace(role=cursor)
            record = record._replace(node=start)
        if event is not None:
            record = record._replace(event=event)
        transition = NewCommit(record, Words("forged"), present, tuple(nodes))
        oid = record_next(world.store, snapshot, transition, world.caller.signing(world.store))
        assert world.store.refs.advance(f"refs/threads/{thread}", seen=snapshot.commit.oid, to=oid)

    return forge


FORGED = {
    "agent of a step": forged(step="agent"),
    "agents of the thread": forged(agent=True),
    "attempt": forged(attempt=True, event="attempt"),
    "cursor beyond the start": forged(cursor="checker"),
    "step that is the start": forged(cursor="writer", event="step"),
    "role that is not there": forged(cursor="nobody"),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED.keys())
def test_whatever_a_peer_pushes_is_read_or_reported(forge: Forge, world: World) -> None:
    thread = world.stepped()
    world.fail(thread)
    forge(world, thread)

    for look in (
        lambda: show_thread(world.store, thread, full=True),
        lambda: show_thread(world.store, thread),
        lambda: read_thread(world.store, thread),
        lambda: get_context(world.store, thread),
        lambda: world.step(thread),
    ):
        # Any error but a UwfError would be a crash of the command that reads it.
        with suppress(UwfError):
            look()
    assert [row["thread"] for row in list_thread_rows(world.store, ListRequest(archived=True))] == [
        thread
    ]


def test_invalid_agent_is_not_run(world: World, thread: ThreadId) -> None:
    forged(agent=True)(world, thread)

    with pytest.raises(DamagedNode, match="in the place of a node of the type AgentConfig"):
        world.step(thread)
    assert world.step(thread, command="mine").depth == 1
