"""Derived commits: made twice they are the same, and git finds nothing wrong with them."""

from collections.abc import Callable

from commands.world import World

from uwf_git.commands.split.commits import (
    Branch,
    Derived,
    Ending,
    ReadSplit,
    SplitPlan,
    draft_join,
    draft_split,
)
from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.threads.heads import advance_head, create_head, get_head
from uwf_git.store.threads.local_files import set_workdir
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot


def branches_of(tip: Snapshot, count: int) -> list[Branch]:
    present = tip.get_present()
    return [
        Branch(
            f"part-{number}",
            present.workflow,
            tip.record.workflow_name,
            f"Do part {number}.",
            present.binding,
            {"part": number},
            entry=f"0/{number}",
        )
        for number in range(count)
    ]


def split(world: World, thread: ThreadId, count: int = 2) -> Snapshot:
    tip = world.snapshot(thread)
    derived = draft_split(tip, SplitPlan("0", "parts", branches_of(tip, count)))
    commit = derived.write(world.store)
    assert commit == derived.oid
    advance_head(world.store, get_head(world.store, thread), commit)
    return world.snapshot(thread)


def start_of(at: Snapshot, number: int) -> Derived:
    plan = SplitPlan("0", "parts", branches_of(at, 5))
    return ReadSplit(at, at.get_present(), plan, {}).draft_start(number)


def begin(world: World, at: Snapshot) -> list[ThreadId]:
    found = at.get_present().split
    assert found is not None
    for number, child in enumerate(found.children):
        set_workdir(world.store, child.thread, str(world.place))
        create_head(world.store, child.thread, start_of(at, number).write(world.store))
    return [child.thread for child in found.children]


def finish(world: World, thread: ThreadId) -> Snapshot:
    while world.step(thread).status != "completed":
        pass
    return world.snapshot(thread)


def join(world: World, thread: ThreadId, children: list[ThreadId]) -> Derived:
    tips = [world.snapshot(child) for child in children]
    said = [(f"part-{number}", "done") for number in range(len(tips))]
    ending = Ending("parts", said, {"branches": []}, {"all": "good"})
    return draft_join(world.snapshot(thread), tips, ending)


def test_a_split_joined_thread_is_whole_for_git(world: World, git: Callable[..., str]) -> None:
    thread = world.begun()
    world.step(thread)
    at = split(world, thread)
    children = begin(world, at)
    tips = [finish(world, child) for child in children]
    joined = join(world, thread, children).write(world.store)
    advance_head(world.store, get_head(world.store, thread), joined)

    now = world.snapshot(thread)
    present = now.get_present()
    assert (now.record.event, now.record.status, now.record.depth) == ("join", "ready", 2)
    assert now.subject == "join: parts: 2 completed"
    assert (present.split, present.state, present.at) == (None, {"all": "good"}, "0")
    assert present.visits == {"writer": 3, "checker": 2}
    assert present.execution_ms == 1500 * 5
    step = now.get_head_node()
    assert step.payload["branches"] == [{"$ref": tip.record.node} for tip in tips]
    assert now.get_node(tips[1].record.node) == tips[1].get_head_node()
    assert git("fsck", "--strict", "--no-dangling", cwd=world.store.path) == ""
    parents = git(
        "log", "-1", "--format=%P %an %cn", f"refs/threads/{thread}", cwd=world.store.path
    )
    assert parents.split() == [at.commit.oid, *(tip.commit.oid for tip in tips), "uwf", "uwf"]


def test_whoever_makes_a_derived_commit_makes_the_same(world: World) -> None:
    thread = world.begun()
    tip = world.snapshot(thread)

    def make() -> Oid:
        derived = draft_split(tip, SplitPlan("0", "parts", branches_of(tip, 3)))
        return derived.write(world.store)

    one = make()
    world.caller.now_ms()
    world.reopen()
    assert make() == one
    at = read_snapshot(world.store, one)
    assert start_of(at, 2).oid == start_of(at, 2).write(world.store)


def test_two_splits_of_one_thread_have_other_branches(world: World) -> None:
    thread = world.begun()
    tip = world.snapshot(thread)
    one, other = (
        draft_split(tip, SplitPlan(at, "parts", branches_of(tip, 1))) for at in ("0", "1")
    )

    ids = {
        each.new.present.split.children[0].thread for each in (one, other) if each.new.present.split
    }
    assert len(ids) == 2
