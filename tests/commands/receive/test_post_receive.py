import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands.world import World, says

from uwf_git.commands.receive.receive import announce_push
from uwf_git.commands.receive.ref_update import RefUpdate
from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid

Git = Callable[..., str]


@pytest.fixture
def thread(world: World) -> ThreadId:
    return world.begun()


@pytest.fixture
def heard(world: World, git: Git) -> Callable[[], list[dict[str, Any]]]:
    """Let a program listen, and return the events that it received."""
    listener = world.program('cat >>"$0.heard"', name="listener")
    git("config", "uwf.onReceive", listener, cwd=Path(world.store.path))
    world.reopen()
    path = Path(f"{listener}.heard")

    def read() -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    return read


def tip(world: World, thread: ThreadId) -> Oid:
    return world.snapshot(thread).commit.oid


def announce(world: World, *updates: RefUpdate) -> list[str]:
    return announce_push(world.store, updates, os.environ)


def active(thread: str) -> str:
    return f"refs/threads/{thread}"


def archive(thread: str) -> str:
    return f"refs/archive/{thread}"


def test_transition_is_announced_in_full(
    world: World, thread: ThreadId, heard: Callable[[], list[dict[str, Any]]]
) -> None:
    before = tip(world, thread)
    world.step(thread, says({"text": "a\nb"}))
    snapshot = world.snapshot(thread)

    assert announce(world, RefUpdate(active(thread), before, snapshot.commit.oid)) == []

    assert heard() == [
        {
            "event": "step",
            "thread": thread,
            "status": "ready",
            "role": "writer",
            "agent": "nobody",
            "attempt": None,
            "depth": 1,
            "node": snapshot.record.node,
            "workflow": snapshot.record.workflow,
            "workflowName": "demo",
            "forkedFrom": None,
            "parentThread": None,
            "commit": snapshot.commit.oid,
            "subject": snapshot.subject,
            "time": snapshot.commit.time_s * 1000,
            "ref": active(thread),
        }
    ]


@pytest.mark.parametrize("how", ["with the deletion", "alone", "after a step in the same push"])
def test_archived_thread_is_announced_from_its_last_commit_here(
    how: str, world: World, thread: ThreadId, heard: Callable[[], list[dict[str, Any]]]
) -> None:
    first = tip(world, thread)
    world.step(thread)
    second = tip(world, thread)
    world.step(thread)
    world.step(thread)
    last = tip(world, thread)
    moved = RefUpdate(archive(thread), None, last)
    if how == "with the deletion":
        updates = [RefUpdate(active(thread), first, None), moved]
    elif how == "alone":
        world.store.refs.create(active(thread), first)
        updates = [moved]
    else:
        world.store.refs.create(active(thread), second)
        updates = [moved, RefUpdate(active(thread), first, second)]

    assert announce(world, *updates) == []

    assert [line["event"] for line in heard()] == ["step", "step", "end"]
    assert {line["ref"] for line in heard()} == {archive(thread)}
    assert world.store.refs.find(active(thread)) is None
    assert world.store.refs.find(archive(thread)) == last


def test_diverged_active_ref_is_kept_and_reported(world: World, thread: ThreadId) -> None:
    first = tip(world, thread)
    world.step(thread)
    other = tip(world, thread)
    world.store.refs.advance(active(thread), seen=other, to=first)
    while world.step(thread, says({"text": "two", "ok": True})).role is not None:
        pass
    world.store.refs.create(active(thread), other)

    (warning,) = announce(world, RefUpdate(archive(thread), None, tip(world, thread)))

    assert f"{active(thread)} is kept beside it" in warning
    assert world.store.refs.find(active(thread)) == other


def test_deletions_workflows_and_branches_are_not_announced(
    world: World, thread: ThreadId, heard: Callable[[], list[dict[str, Any]]]
) -> None:
    oid = tip(world, thread)
    names = ("refs/workflows/demo", "refs/heads/main", "refs/cas/nodes", "refs/threads/x")

    announce(world, RefUpdate(active(thread), oid, None), *(RefUpdate(n, None, oid) for n in names))

    assert heard() == []


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("false", "false ended with status 1: "),
        ("/no/such/program", "could not be started"),
        ("'", "no closing quotation"),
    ],
)
def test_listener_that_fails_is_reported(
    command: str, told: str, world: World, thread: ThreadId, git: Git
) -> None:
    git("config", "uwf.onReceive", command, cwd=Path(world.store.path))
    world.reopen()

    (warning,) = announce(world, RefUpdate(active(thread), None, tip(world, thread)))

    assert warning.startswith("uwf.onReceive: ")
    assert told in warning


def test_commit_that_cannot_be_read_is_a_warning(
    world: World, heard: Callable[[], list[dict[str, Any]]]
) -> None:
    thread = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")

    (warning,) = announce(world, RefUpdate(active(thread), None, Oid("1" * 40)))

    assert "is missing" in warning
    assert heard() == []
