"""One step: its result, its traces in the store, and its lock."""

import threading
from pathlib import Path
from typing import Any

import pytest
from commands.drive.test_drive_branches import wide
from commands.flows import CHECKS, plays, split_checks, split_files
from commands.world import DEMO, World, content_player, fails, says
from fresh_store import fresh_store
from store.loose import lose

from uwf_git.commands.caller import Caller
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.start import StartRequest, start_thread
from uwf_git.commands.step.record_turn import WorkKept
from uwf_git.commands.step.step_thread import StepRequest, settle_branches, step_thread
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.commands.turn.limits import LimitReached
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.workflow.build import put_workflow
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.store.packing import MOST_PACKS
from uwf_git.store.threads.history import list_preserved
from uwf_git.store.threads.local_files import ThreadBusy, lock_drive, lock_stop


@pytest.mark.parametrize(
    "usage", [{"tokens": "many"}, {"tokens": [1]}, {"tokens": -1}, {"tokens": 1e308}, {"": {}}]
)
def test_strange_usage_never_stops_a_thread(usage: dict[str, Any], world: World) -> None:
    thread = world.begun()

    for meta in ({"text": "x"}, {"ok": False}, {"text": "y"}):
        world.step(thread, says(meta, usage=usage))

    assert world.snapshot(thread).record.depth == 3


@pytest.mark.parametrize("lock", [lock_drive, lock_stop])
def test_no_step_is_taken_while_another_process_drives_or_ends_the_thread(
    lock: Any, world: World
) -> None:
    thread = world.begun()

    with lock(world.store, thread, since_ms=0), pytest.raises(ThreadBusy):
        world.step(thread)

    assert world.step(thread).role == "writer"


def test_work_of_a_thread_that_is_removed_meanwhile_is_kept(world: World) -> None:
    thread = world.begun()

    def play(turn: Turn) -> Played:
        # As `git update-ref -d` does.
        assert world.store.refs.delete(f"refs/threads/{thread}", seen=turn.snapshot.commit.oid)
        return content_player(turn)

    with pytest.raises(WorkKept):
        world.step(thread, play)

    assert len(list_preserved(world.store, thread)) == 1


@pytest.mark.parametrize(("version", "told"), [("1", "has format 1"), ("3", "newer")])
def test_thread_of_another_version_of_the_format_is_not_touched(
    world: World, version: str, told: str
) -> None:
    thread = world.begun()
    snapshot = world.snapshot(thread)
    message = snapshot.commit.message.replace(b"Format: 2", f"Format: {version}".encode())
    other = rewrite(world, thread, message)

    with pytest.raises(StoreDamaged, match=told):
        world.step(thread)

    assert world.store.refs.find(f"refs/threads/{thread}") == other


def rewrite(world: World, thread: ThreadId, message: bytes) -> str:
    """Let the thread's ref point at its commit with another message."""
    from uwf_git.store.objects.commit import CommitDraft, write_commit  # noqa: PLC0415 (one test's need)
    from uwf_git.store.objects.objects import get_tree  # noqa: PLC0415 (one test's need)

    view = world.snapshot(thread).commit
    tree = get_tree(world.store.objects, view.tree)
    draft = CommitDraft(tree, (), message, [])
    oid = write_commit(world.store.objects, draft, world.caller.signing(world.store))
    assert world.store.refs.advance(f"refs/threads/{thread}", seen=view.oid, to=oid)
    return oid


def test_same_calls_give_the_same_commits_anywhere(clock: Any, thread_ids: Any) -> None:
    def tip() -> str | None:
        at = iter(range(1_760_000_000_000, 1_760_000_100_000, 1000))
        store, caller = fresh_store(), Caller(lambda: next(at), {}, "/")
        put_workflow(store, caller, DEMO.encode())
        thread = ThreadId("01J00000000000000000000001")
        start_thread(store, caller, StartRequest("demo", "x"), thread=thread)
        step_thread(store, caller, StepRequest(thread, content_player, Choice(("library",))))
        return store.refs.find(f"refs/threads/{thread}")

    assert tip() == tip() is not None


# Branches as steps see them: held by their thread, joined when all have ended.


TOLERANT = CHECKS.replace(
    "name: checks\n      nodes", "name: checks\n      onError: continue\n      nodes"
)


def test_branches_of_a_paused_thread_are_not_given_up(world: World) -> None:
    split = split_checks(world, TOLERANT)
    with pytest.raises(Exception, match="exit status 7"):
        world.step(split.children[0], fails())
    world.pause(split.thread)

    assert not settle_branches(world.store, world.caller, split.thread)

    world.resume(split.thread)
    assert settle_branches(world.store, world.caller, split.thread)


def test_a_step_gives_up_the_branches_that_failed_in_it(world: World) -> None:
    split = split_checks(world, TOLERANT)

    stepped = world.step(split.thread, fails())

    assert stepped.status == "ready"
    given_up = show_thread(world.store, split.thread)["givenUp"]
    assert [each["error"] for each in given_up] == ["exit status 7", "exit status 7"]
    # They are those of the newest step that counts.
    world.step(split.thread)
    assert "givenUp" not in show_thread(world.store, split.thread)
    world.poke(split.thread)
    assert show_thread(world.store, split.thread)["givenUp"] == given_up
    lose(world.store, world.tip(given_up[0]["thread"]))
    assert "givenUp" not in show_thread(world.store, split.thread)


def test_a_step_of_branches_at_once_keeps_the_most_steps(world: World) -> None:
    thread = world.begun(wide(4, passes=1) + "config: {maxSteps: 2}\n")
    world.step(thread, plays)
    two = threading.Barrier(2)

    def play(turn: Turn) -> Played:
        two.wait(30)
        return plays(turn)

    stepped = world.step(thread, play)

    assert [each.result is not None for each in stepped.branches] == [True, True, False, False]
    assert all(isinstance(each.error, LimitReached) for each in stepped.branches[2:])


def test_a_step_of_many_branches_leaves_few_packs(world: World) -> None:
    at = split_files(world, 40)

    at.step()

    packs = Path(world.store.path, "objects", "pack").glob("*.pack")
    assert len(list(packs)) <= MOST_PACKS + 1
