"""Commands killed at every moment: before or after, never between, and nothing to clean up."""

from commands.killed import copy_of, kill_everywhere, make_folders, state_of
from commands.world import DEMO, World
from store.killing import moments_of

from uwf_git.commands.admin import set_setting
from uwf_git.commands.cas import bootstrap_store, put_payload
from uwf_git.commands.turn.branches import ThreadNotActive
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import find_head, list_threads
from uwf_git.store.trust import list_trusted, trust_agents
from uwf_git.store.workflows import find_version, list_versions, read_sources


def begin(world: World) -> object:
    return world.start("somebody")


def test_a_first_workflow_put_killed_anywhere_can_be_put_again(world: World) -> None:
    bootstrap_store(world.store, world.caller)
    make_folders(world, World.put)

    def again(copy: World) -> None:
        found = find_version(copy.store, "demo")
        assert (
            found is None
            or read_sources(copy.store.objects, found.commit).workflow == DEMO.encode()
        )
        assert copy.put().changed == (found is None)
        assert len(list(list_versions(copy.store))) == 1

    # A process judges a text once, in a child: no put below does.
    copy_of(world).put()
    assert kill_everywhere(world, World.put, again) > 15


def test_a_start_killed_anywhere_leaves_a_whole_thread_or_none(world: World) -> None:
    world.put()
    make_folders(world, begin)

    def again(copy: World) -> None:
        begun = list_threads(copy.store, archived=False)
        assert begun in ([], [copy.new_id()])
        threads = {*begun, copy.start("somebody")}
        assert set(list_threads(copy.store, archived=False)) == threads
        for thread in threads:
            assert state_of(copy, thread) == ("ready", 0)
        if begun:
            assert copy.step(begun[0]).depth == 1

    assert kill_everywhere(world, begin, again) > 15


def test_a_step_killed_anywhere_was_taken_once_or_not_at_all(world: World) -> None:
    thread = world.begun()

    def again(copy: World) -> None:
        status, depth = state_of(copy, thread)
        assert (status, depth) in {("ready", 0), ("ready", 1)}
        assert copy.step(thread).depth == depth + 1
        roles = [node.payload.get("role") for node in copy.snapshot(thread).walk_chain()]
        assert roles == ["checker", "writer", None][1 - depth :]

    assert kill_everywhere(world, lambda copy: copy.step(thread), again) > 15


def test_an_end_killed_anywhere_is_an_active_or_an_archived_thread(world: World) -> None:
    thread = world.stepped(times=2)

    def again(copy: World) -> None:
        status, depth = state_of(copy, thread)
        assert (status, depth) in {("ready", 2), ("completed", 2)}
        if status == "ready":
            assert copy.step(thread).status == "completed"
        check_archived(copy, thread)

    assert kill_everywhere(world, lambda copy: copy.step(thread), again) > 30


def test_a_kill_killed_anywhere_is_an_active_or_an_archived_thread(world: World) -> None:
    thread = world.begun()

    def kill(copy: World) -> object:
        return copy.kill(thread, reason="enough")

    def again(copy: World) -> None:
        status, depth = state_of(copy, thread)
        assert (status, depth) in {("ready", 0), ("killed", 0)}
        if status == "ready":
            kill(copy)
        check_archived(copy, thread)

    assert kill_everywhere(world, kill, again) > 30


def check_archived(world: World, thread: ThreadId) -> None:
    head = find_head(world.store, thread)
    assert head is not None
    assert head.archived
    try:
        world.step(thread)
    except ThreadNotActive:
        return
    raise AssertionError("a thread that has ended was stepped")


def test_a_node_put_by_hand_and_killed_anywhere_can_be_put_again(world: World) -> None:
    put_payload(world.store, world.caller, "Text", "one")

    def put(copy: World) -> object:
        return put_payload(copy.store, copy.caller, "Text", "two")

    def again(copy: World) -> None:
        put(copy)
        assert not put_payload(copy.store, copy.caller, "Text", "one").new
        assert not put_payload(copy.store, copy.caller, "Text", "two").new

    assert kill_everywhere(world, put, again) > 10


def test_a_setting_killed_anywhere_has_its_old_value_or_the_new(world: World) -> None:
    set_setting(world.store, "uwf.agent", "old")
    world.reopen()

    def change(copy: World) -> object:
        return set_setting(copy.store, "uwf.agent", "new")

    def again(copy: World) -> None:
        assert copy.store.config.get("uwf.agent") in {"old", "new"}
        change(copy)
        copy.reopen()
        assert copy.store.config.get_all("uwf.agent") == ["new"]

    assert kill_everywhere(world, change, again) > 8


def test_trust_killed_anywhere_is_there_once_or_not_at_all(world: World) -> None:
    one, two = {"command": "one"}, {"command": "two"}
    trust_agents(world.store, [one], None)

    def again(copy: World) -> None:
        assert [each.agent for each in list_trusted(copy.store)] in ([one], [one, two])
        trust_agents(copy.store, [two], None)
        copy.reopen()
        assert [each.agent for each in list_trusted(copy.store)] == [one, two]

    assert kill_everywhere(world, lambda copy: trust_agents(copy.store, [two], None), again) > 8


def test_to_wait_for_the_disk_adds_no_moment(world: World, thread: ThreadId) -> None:
    """So that to kill commands that do not wait, which takes less time, is to kill them all."""
    kinds = []
    for is_forced in ("false", "true"):
        copy = copy_of(world)
        set_setting(copy.store, "uwf.fsync", is_forced)
        copy.reopen()
        moments = moments_of(lambda: copy.step(thread))  # noqa: B023 - it is called at once
        kinds.append([moment.split()[0] for moment in moments])
    assert kinds[0] == kinds[1]
