"""Pokes that go back to somewhere else."""

import pytest
from commands.flows import split_checks
from commands.forging import Change, also, commits_of, forge, messages, points, says, tip_of
from commands.world import World

from uwf_git.commands.control.answer import build_signalled, record_built
from uwf_git.model.event_folds import Cause
from uwf_git.model.names import Oid, ThreadId
from uwf_git.model.thread import build_signal
from uwf_git.store.threads.history import NewCommit, Snapshot, read_snapshot, read_standing


def poked(world: World) -> ThreadId:
    """Start a thread of two steps, and poke it."""
    thread = world.stepped(times=2)
    world.poke(thread)
    return thread


def snapshots(world: World, thread: ThreadId) -> list[Snapshot]:
    commits = commits_of(world.store, tip_of(world.store, f"refs/threads/{thread}"))
    return [read_snapshot(world.store, Oid(each.id.decode())) for each in commits]


def goes_to(old: Snapshot, new: Snapshot, world: World) -> Change:
    """Let a commit have another head."""
    return also(
        says(f"Uwf-Node: {old.record.node}", f"Uwf-Node: {new.record.node}"),
        points(world.store, "head.json", new.get_entry("head.json")),
    )


def test_poke_that_goes_back_to_another_head_is_reported(world: World) -> None:
    thread = poked(world)
    start, step, second, poke = snapshots(world, thread)
    ref = f"refs/threads/{thread}"
    forge(world.store, ref, {-1: goes_to(poke, start, world)})

    (told,) = messages(world)
    assert told == (f"Uwf-Node is {start.record.node}, and must be {step.record.node}")
    forge(world.store, ref, {-1: goes_to(start, second, world)})
    assert f"Uwf-Node is {second.record.node}, and " in messages(world)[0]


@pytest.mark.parametrize("newest", ["start", "poke", "join"])
def test_poke_that_comes_after_no_step_is_reported(world: World, newest: str) -> None:
    thread = poked(world) if newest == "poke" else world.begun()
    if newest == "join":
        split = split_checks(world)
        split.finish_branches()
        split.step()
        thread = split.thread

    def build(snapshot: Snapshot) -> NewCommit:
        standing = read_standing(snapshot)
        signal = build_signal("poke", timestamp=world.caller.now_ms())
        return build_signalled(snapshot, Cause(back_to=standing), signal=signal)

    record_built(world.store, world.caller, thread, build)

    assert messages(world) == ["poke comes after no step that can be taken again"]
