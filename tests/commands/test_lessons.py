"""Failures of an engine of the same design, which cannot happen here.

DECISIONS.md, "What went wrong elsewhere", lists all of it, and where each is held.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands.world import Git, World, content_player, read_thread, replied

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.cas import get_node, put_payload, put_schema
from uwf_git.commands.inspect.list import ListRequest, list_thread_rows
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.builtin import TEXT
from uwf_git.model.names import ThreadId
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.store import open_store
from uwf_git.store.threads.heads import find_head


def test_nodes_that_an_agent_puts_are_there_for_the_engine_that_waited_for_it(world: World) -> None:
    thread = world.begun()
    # Known to the engine before the agent runs, so that a cache would be an old one.
    get_node(world.store, TEXT)

    def play(turn: Turn) -> Played:
        pid = os.fork()
        if pid == 0:
            put_payload(open_store(turn.store.path), world.caller, TEXT, "put by the agent")
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        return content_player(turn)

    world.step(thread, play)

    text = put_payload(world.store, world.caller, TEXT, "put by the agent")
    assert not text.new
    assert get_node(world.store, text.hash).node.payload == "put by the agent"


def test_reader_finds_a_thread_at_every_moment_of_its_archiving(world: World) -> None:
    threads = [world.begun() if not number else world.start() for number in range(20)]
    stop_read, stop_write = os.pipe()
    reader = os.fork()
    if reader == 0:
        os.close(stop_write)
        os.set_blocking(stop_read, False)
        os._exit(_missed(world, threads, stop_read))
    os.close(stop_read)
    for thread in threads:
        world.kill(thread)
    os.close(stop_write)
    assert os.waitstatus_to_exitcode(os.waitpid(reader, 0)[1]) == 0


def _missed(world: World, threads: list[ThreadId], stop: int) -> int:
    """Look for the threads repeatedly; return how often one was missing, at most 99."""
    store, missed = open_store(world.store.path), 0
    while True:
        missed += sum(find_head(store, thread) is None for thread in threads)
        try:
            if not os.read(stop, 1):
                return min(missed, 99)
        except BlockingIOError:
            continue


def test_agent_finds_the_store_that_its_engine_uses(world: World) -> None:
    thread = world.start(
        world.program('printf \'{"meta": {"text": "%s"}}\' "$UWF_REPO"'),
        workflow=world.put().workflow,
    )
    world.step(thread, agent_player(lambda _chunk: None))
    assert world.snapshot(thread).get_head_node().payload["meta"] == {"text": world.store.path}


@pytest.mark.parametrize("look", [
    lambda world, thread: show_thread(world.store, thread, full=True),
    lambda world, thread: read_thread(world.store, thread),
    lambda world, thread: world.step(
        world.fork(thread)
    ),
])  # fmt: skip
def test_what_reads_a_thread_reads_an_ended_one(
    look: Callable[[World, ThreadId], Any], world: World
) -> None:
    thread = world.stepped()
    world.kill(thread)
    assert look(world, thread)


def test_ended_threads_keep_their_workflow_and_how_they_ended_in_lists(world: World) -> None:
    killed, completed = world.begun(), world.start()
    world.kill(killed)
    for _ in range(3):
        world.step(completed)
    rows = list_thread_rows(world.store, ListRequest(archived=True))
    assert {row["thread"]: (row["workflowName"], row["status"]) for row in rows} == {
        killed: ("demo", "killed"),
        completed: ("demo", "completed"),
    }


def test_looking_at_a_store_leaves_no_file_behind(world: World) -> None:
    thread = world.stepped()

    def files() -> list[str]:
        return sorted(str(path) for path in Path(world.store.path).rglob("*"))

    before = files()
    for _ in range(3):
        world.reopen()
        show_thread(world.store, thread)
        read_thread(world.store, thread)
        list_thread_rows(world.store, ListRequest(archived=True))
    assert files() == before


def test_opening_a_store_reads_no_object(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.begun()
    read: list[object] = []
    whole = DurableObjects.__getitem__

    def counted(self: DurableObjects, oid: Any) -> Any:
        read.append(oid)
        return whole(self, oid)

    monkeypatch.setattr(DurableObjects, "__getitem__", counted)
    store = open_store(world.store.path)
    assert read == []
    list_thread_rows(store, ListRequest())
    # One row costs its commit, however much the thread holds.
    assert len(read) <= 1


def test_node_that_only_a_branch_of_a_schema_refers_to_outlives_gc(world: World, git: Git) -> None:
    target = put_payload(world.store, world.caller, TEXT, "kept by a branch")
    reference = {
        "type": "object",
        "properties": {"$ref": {"type": "string", "format": "cas_ref"}},
        "required": ["$ref"],
    }
    schema = put_schema(
        world.store,
        world.caller,
        {"oneOf": [{"type": "null"}, {"type": "object", "properties": {"to": reference}}]},
    )
    put_payload(world.store, world.caller, schema.hash, {"to": {"$ref": target.hash}})
    git("gc", "--quiet", "--prune=now", cwd=world.store.path)
    world.reopen()
    assert get_node(world.store, target.hash).node.payload == "kept by a branch"


def test_sessions_of_two_threads_and_two_roles_do_not_meet(world: World) -> None:
    one, other = world.begun(), world.start()
    for thread in (one, other):
        world.step(thread, lambda _turn: replied({"text": "x"}, session=f"of {_turn.thread}"))
    assert [
        world.snapshot(thread).get_head_node().payload["session"] for thread in (one, other)
    ] == [f"of {one}", f"of {other}"]
