"""Threads that an agent started: depth and parentThread of seed 001."""

import os
from pathlib import Path

import pytest
from commands.forging import forge, messages, says
from commands.world import World, read_thread
from refusing import refuses

from uwf_git.commands.inspect.context import get_context
from uwf_git.commands.inspect.list import ListRequest, list_thread_rows
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.start import Forked, ForkRequest, StartRequest, fork_thread, start_thread
from uwf_git.engine.turn_context import parse_context
from uwf_git.model.names import ThreadId
from uwf_git.store.git.config import GitConfig
from uwf_git.store.threads.heads import NoSuchThread, ThreadExists
from uwf_git.store.threads.local_files import workdirs_folder


def fork(world: World, thread: str, at: str | None = None, **asked: str) -> Forked:
    request = ForkRequest(thread, at, **asked)
    return fork_thread(world.store, world.caller, request, thread=world.new_id())


def test_what_cannot_be_signed_leaves_no_work_directory_behind(world: World) -> None:
    thread = world.begun()
    config = GitConfig({"commit.gpgsign": ["true"], "gpg.format": ["ssh"]})
    store = world.store._replace(config=config)
    known = os.listdir(workdirs_folder(store))

    with refuses("cannot-sign"):
        fork_thread(store, world.caller, ForkRequest(thread), thread=world.new_id())
    with refuses("cannot-sign"):
        request = StartRequest("demo", "x", ("nobody",))
        start_thread(store, world.caller, request, thread=world.new_id())

    assert os.listdir(workdirs_folder(store)) == known


def test_fork_goes_on_where_the_other_thread_is(world: World) -> None:
    thread = world.begun()
    world.step(thread)
    before = world.snapshot(thread)

    forked = fork(world, thread)

    after = world.snapshot(forked.thread)
    assert after.record.event == "fork"
    assert after.record.forked_from == thread
    assert (after.record.node, after.record.depth) == (before.record.node, 1)
    assert after.commit.parents == (before.commit.oid,)
    assert after.commit.tree == before.commit.tree
    assert world.step(forked.thread).role == "checker"
    assert world.snapshot(thread).commit == before.commit


def test_fork_that_cannot_be_made_leaves_nothing(world: World) -> None:
    thread = world.begun()
    request = ForkRequest(thread, workdir="nowhere")
    new = world.new_id()
    with refuses("not-a-directory"):
        fork_thread(world.store, world.caller, request, thread=new)
    with pytest.raises(ThreadExists):
        fork_thread(world.store, world.caller, ForkRequest(thread), thread=thread)
    assert world.store.refs.names("refs/threads/") == [thread]
    assert os.listdir(Path(world.store.path, "uwf-workdirs")) == [thread]


NOWHERE = "01J7K9M2XNPQR5VWBCDF8G3H4T"


def start_within(world: World, thread: str, *, parent: str | None = None) -> ThreadId:
    """Start a thread as a process does that the agent of *thread* runs."""
    caller = world.caller._replace(environ={**world.caller.environ, "UWF_THREAD_ID": thread})
    request = StartRequest("demo", "A part of it.", ("nobody",), parent=parent)
    return start_thread(world.store, caller, request, thread=world.new_id()).thread


def nesting_of(world: World, thread: str) -> tuple[str | None, int]:
    shown = show_thread(world.store, thread)
    return shown["parentThread"], shown["threadDepth"]


def test_thread_that_an_agent_starts_records_its_parent_and_depth(world: World) -> None:
    parent = world.begun()
    child = start_within(world, parent)
    grandchild = start_within(world, child)

    snapshot = world.snapshot(grandchild)
    assert snapshot.get_start().payload["depth"] == 2
    assert b"\nUwf-Parent-Thread: " + child.encode() + b"\n" in snapshot.commit.message
    assert nesting_of(world, parent) == (None, 0)
    assert nesting_of(world, child) == (parent, 1)
    assert nesting_of(world, grandchild) == (child, 2)
    assert "depth" not in world.snapshot(parent).get_start().payload
    world.assert_whole()


def test_parent_that_is_named_must_exist(world: World) -> None:
    parent = world.begun()

    assert nesting_of(world, start_within(world, "", parent=parent.lower())) == (parent, 1)
    with pytest.raises(NoSuchThread):
        start_within(world, parent, parent=NOWHERE)


def test_children_are_listed_ended_ones_as_well(world: World) -> None:
    parent = world.begun()
    first, second = start_within(world, parent), start_within(world, parent)
    start_within(world, second)
    for _ in range(3):
        world.step(first)

    def children(text: str) -> list[str]:
        return [row["thread"] for row in list_thread_rows(world.store, ListRequest(parent=text))]

    assert children(parent) == [second, first]
    assert children(first) == children(NOWHERE) == []
    rows = list_thread_rows(world.store, ListRequest())
    assert [row.get("parentThread") for row in rows] == [second, parent, None]
    with pytest.raises(NoSuchThread):
        children("7ZZZ")


def test_parent_is_told_to_readers_and_agents(world: World) -> None:
    parent = world.begun()
    child = start_within(world, parent)

    assert f" · by an agent of thread `{parent}`\n" in read_thread(world.store, child)
    assert "by an agent of" not in read_thread(world.store, parent)
    context = get_context(world.store, child)
    assert (context["start"]["depth"], context["start"]["parentThread"]) == (1, parent)
    start = parse_context(context).start
    assert (start.depth, start.parent_thread) == (1, parent)
    assert parse_context(get_context(world.store, parent)).start.parent_thread is None
    for name in ("depth", "parentThread"):
        # As an older uwf prints it.
        del context["start"][name]
    assert parse_context(context).start.depth == 0


def test_forged_parent_is_reported(world: World) -> None:
    parent, other = world.begun(), world.start()
    child = start_within(world, parent)
    world.step(child)
    ref = f"refs/threads/{child}"

    forge(world.store, ref, {1: says(f"Parent-Thread: {parent}", f"Parent-Thread: {other}")})
    assert f"Uwf-Parent-Thread is {other}, and must be {parent}" in messages(world)


def test_parent_and_depth_come_together(world: World) -> None:
    child, alone = start_within(world, world.begun()), world.start()
    parent = world.snapshot(child).record.parent_thread

    forge(world.store, f"refs/threads/{child}", {0: says(f"Uwf-Parent-Thread: {parent}\n", "")})
    invented = f"Uwf-Parent-Thread: {parent}\nUwf-Event"
    forge(world.store, f"refs/threads/{alone}", {0: says("Uwf-Event", invented)})

    assert sorted(messages(world)) == sorted(
        [
            "Uwf-Parent-Thread is absent, and start.json has depth 1",
            f"Uwf-Parent-Thread is {parent}, and start.json has depth 0",
        ]
    )
