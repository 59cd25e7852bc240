"""Failures of an engine of the same design, which cannot happen here.

DECISIONS.md, "What went wrong elsewhere", lists all of it, and where each is held.
"""

import os
from collections.abc import Callable

from commands.world import World, content_player

from uwf_git.commands.cas import get_node, put_payload, put_schema
from uwf_git.commands.control.steer import kill_thread
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.builtin import TEXT
from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store
from uwf_git.store.threads.heads import find_head


def test_nodes_that_an_agent_puts_are_there_for_the_engine_that_waited_for_it(
    world: World,
) -> None:
    thread = world.begun()
    # Known to the engine before the agent runs, so that a cache would be an old one.
    get_node(world.store, TEXT)

    def play(turn: Turn) -> Played:
        pid = os.fork()
        if pid == 0:
            store = open_store(turn.store.path)
            put_payload(store, world.caller, TEXT, "put by the agent")
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        return content_player(turn)

    world.step(thread, play)

    text = put_payload(world.store, world.caller, TEXT, "put by the agent")
    assert not text.new
    assert get_node(world.store, text.hash).node.payload == "put by the agent"


def test_threads_begun_and_ended_while_an_agent_runs_are_not_undone(world: World) -> None:
    ended, stepped = world.begun(), world.start()
    begun: list[ThreadId] = []

    def play(turn: Turn) -> Played:
        begun.append(world.start())
        kill_thread(world.store, world.caller, ended)
        return content_player(turn)

    world.step(stepped, play)

    assert world.store.refs.names("refs/threads/") == sorted([stepped, *begun])
    assert world.store.refs.names("refs/archive/") == [ended]


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
        kill_thread(world.store, world.caller, thread)
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


def test_node_that_only_a_branch_of_a_schema_refers_to_outlives_gc(
    world: World, git: Callable[..., str]
) -> None:
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
    payload = {"to": {"$ref": target.hash}}
    put_payload(world.store, world.caller, schema.hash, payload)
    git("gc", "--quiet", "--prune=now", cwd=world.store.path)
    world.reopen()
    assert get_node(world.store, target.hash).node.payload == "kept by a branch"
