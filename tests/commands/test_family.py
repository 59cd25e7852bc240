"""Branches and the threads that they belong to."""

import json
from typing import NamedTuple

import pytest
from commands.flows import FILES, Split, lists, plays, split_checks
from commands.forging import forge, holds, points, troubles
from commands.inspect.test_context import NESTED, branch_of
from commands.inspect.test_show import split_of
from commands.step.test_record_turn import LOOP, drive
from commands.turns import branches, script
from commands.worktree.project import ITEMS, begin_project, children, writer
from commands.world import Git, World, replied
from dulwich.objects import Commit
from fresh_store import fresh_store

from uwf_git.commands.family import (
    Family,
    count_steps_before,
    find_isolation,
    find_owner,
    list_present_descendants,
    name_branch,
    walk_descendants,
)
from uwf_git.commands.inspect.list import ListRequest, list_thread_rows
from uwf_git.commands.receive import check_received
from uwf_git.commands.remote.reconcile import Arrival, judge_arrivals
from uwf_git.commands.split import Asked, draft_split, find_container, plan_split, read_split
from uwf_git.commands.step.step_thread import list_leaves, list_trunks
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.git.hook_files import RefUpdate
from uwf_git.store.objects.commit import read_commit_file
from uwf_git.store.threads.history import read_snapshot


def nested(world: World) -> ThreadId:
    """Begin a thread whose two branches have two branches each."""
    thread = split_of(world, NESTED)
    for _ in range(3):
        world.step(thread, script())
    return thread


def test_family_has_branches_at_every_depth_and_nobody_else(world: World) -> None:
    thread = nested(world)
    other = world.begun(LOOP)
    family = Family(world.store, thread)

    assert thread in family
    assert all(each in family for each in list_present_descendants(world.store, thread))
    assert other not in family
    assert thread not in Family(world.store, branch_of(world, thread, 0))


def test_family_has_a_branch_that_came_before_the_thread_around_it(world: World) -> None:
    thread = nested(world)
    first = branch_of(world, thread, 0)
    inner = branch_of(world, first, 1)
    family, stranger = Family(world.store, thread), Family(world.store, world.begun(LOOP))
    tip = world.tip(first)
    assert world.store.refs.delete(f"refs/threads/{first}", seen=tip)

    assert first not in family
    assert inner in family
    assert inner not in stranger
    assert world.store.refs.create(f"refs/threads/{first}", tip)
    assert first in family
    assert first not in stranger


def test_threads_that_were_forged_to_be_around_each_other_are_damage(world: World) -> None:
    split = split_checks(world)
    child = split.children[0]
    start = world.snapshot(child).get_entry("start.json")

    def turn_inside_out(commit: Commit) -> None:
        points(world.store, "start.json", start)(commit)
        commit.message = b"%s\nUwf-Parent-Thread: %s\n" % (commit.message.rstrip(), child.encode())

    forge(world.store, f"refs/threads/{split.thread}", {-1: turn_inside_out})

    for thread in (split.thread, child):
        with pytest.raises(StoreDamaged, match="of a thread that is around itself"):
            find_owner(world.store, world.snapshot(thread))
        with pytest.raises(StoreDamaged, match="of a thread that is around itself"):
            name_branch(world.store, thread)


@pytest.mark.parametrize("number", [0, 1])
def test_a_thread_that_was_forged_to_be_its_own_branch_is_damage(world: World, number: int) -> None:
    split = split_checks(world)
    now = json.loads(read_commit_file(world.store.objects, split.tip.commit, "now.json"))
    now["split"]["children"][number]["thread"] = split.thread
    content = json.dumps(now).encode()
    forge(
        world.store, f"refs/threads/{split.thread}", {-1: holds(world.store, "now.json", content)}
    )

    with pytest.raises(StoreDamaged, match="names branches that do not follow from it"):
        list(walk_descendants(world.store, split.tip))
    (row,) = list_thread_rows(world.store, ListRequest())
    assert row["status"] == "damaged"


def test_steps_before_a_branch_are_counted_from_the_inside(world: World) -> None:
    thread = nested(world)
    inner = branch_of(world, branch_of(world, thread, 0), 0)
    before = world.snapshot(inner)

    assert count_steps_before(world.store, before) == (1, 2)
    assert count_steps_before(world.store, world.snapshot(thread)) == ()
    drive(world, thread, script(one={"a": 1}, other={"b": 1}))
    # Its parents have gone on: the commits behind it tell.
    assert count_steps_before(world.store, before) == (1, 2)
    assert count_steps_before(world.store, world.snapshot(inner)) == (1, 2)


class Twice(NamedTuple):
    """A thread that was split twice after the same commit: a branch of either has the same id."""

    world: World
    thread: ThreadId
    branch: ThreadId
    at: dict[str, Oid]
    """Before the splits; both splits; how the branch begins after each."""

    def push(self, stored: str, *asked: str) -> list[str]:
        """Return which of the refs is refused to a shared store that has *stored*."""
        store = self.world.store._replace(refs=fresh_store().refs)
        for each in stored.split():
            store.refs.create(self.ref(each), self.at[each])
        told = check_received(
            store, [RefUpdate(self.ref(each), None, self.at[each]) for each in asked]
        )
        names = {f"refs/threads/{self.thread}": "thread", f"refs/threads/{self.branch}": "branch"}
        return [names[each.name] for each in told]

    def ref(self, name: str) -> str:
        return f"refs/threads/{self.branch if name.startswith('begun') else self.thread}"


@pytest.fixture
def twice(world: World) -> Twice:
    """What the items of a map were, its split tells; all else of the other one follows."""
    thread = world.stepped(lambda _turn: replied(lists(2)), source=FILES)
    before = world.snapshot(thread)
    plan = plan_split(before, find_container(before, "0/1"), Asked(items=["other", "more"]))
    other = draft_split(before, plan).write(world.store)
    world.step(thread, plays)
    assert world.snapshot(thread).record.status == "split"
    at = {"before": before.commit.oid, "split": world.tip(thread), "other": other}
    for name in ("split", "other"):
        split = read_split(read_snapshot(world.store, at[name]))
        at[f"begun-{name}"] = split.draft_start(0).write(world.store)
    branch = Split(world, thread).children[0]
    assert read_snapshot(world.store, at["begun-other"]).record.thread == branch
    return Twice(world, thread, branch, at)


@pytest.mark.parametrize("stored", ["", "before", "split", "other"])
def test_a_branch_may_be_pushed_before_its_split(twice: Twice, stored: str) -> None:
    for name in ("split", "other"):
        if stored in {"", "before", name}:
            assert twice.push(stored, f"begun-{name}") == []
            assert twice.push(f"{stored} begun-{name}", name) == []


def test_a_branch_that_began_at_another_split_is_refused(twice: Twice) -> None:
    for mine, other in (("split", "other"), ("other", "split")):
        assert twice.push(f"before begun-{other}", mine) == ["thread"]
        assert twice.push(mine, f"begun-{other}") == ["branch"]
        assert twice.push("before", mine, f"begun-{other}") == ["thread", "branch"]


def test_a_branch_that_began_at_another_split_is_told_and_never_joined(twice: Twice) -> None:
    world, branch = twice.world, twice.branch
    stranger = twice.at["begun-other"]
    arrivals = [
        Arrival(branch, None, stranger, archived=False),
        Arrival(twice.thread, None, twice.at["split"], archived=False),
    ]
    elsewhere = world.store._replace(refs=fresh_store().refs)
    assert judge_arrivals(world.store, arrivals[:1]).passed == set()
    assert judge_arrivals(elsewhere, arrivals[:1]).passed == set(arrivals[:1])
    assert judge_arrivals(elsewhere, arrivals).passed == set(arrivals[1:])
    assert world.store.refs.create(f"refs/threads/{branch}", stranger)

    assert [each.ref for each in troubles(world)] == [twice.ref("split")]
    for _ in range(3):
        done = world.step(twice.thread, plays)
    assert done.branches[-1].error.code == "strange-branch"
    assert world.snapshot(twice.thread).record.status == "split"
    assert [each.ref for each in troubles(world)] == [twice.ref("split")]


# Which branches work in a worktree of their own, and in whose.


def test_branches_and_those_around_them(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.stepped(source=ITEMS)
    world.step(thread, writer())
    outer = world.snapshot(children(world.snapshot(thread))[0])
    world.step(outer.record.thread, writer())
    inner = world.snapshot(children(outer)[0])
    root = world.snapshot(thread)

    assert (root.get_trunk(), outer.get_trunk()) == (None, thread)
    assert inner.get_trunk() == outer.record.thread
    assert [find_isolation(each) for each in (root, outer, inner)] == [None, "0", None]
    owners = [find_owner(world.store, each) for each in (root, outer, inner)]
    assert [each and each.record.thread for each in owners] == [None, *[outer.record.thread] * 2]


# Branches below a thread, the deepest and those around them.

FLOW = """\
name: tree
root:
  type: parallel
  nodes:
    - {type: agent, agentId: one}
    - type: parallel
      nodes: [{type: agent, agentId: two}, {type: agent, agentId: three}]
"""


def names(world: World, thread: ThreadId) -> list[str]:
    return [head.thread for head, _ in walk_descendants(world.store, world.snapshot(thread))]


def test_parents_come_first_and_trunks_last(world: World) -> None:
    thread = world.stepped(script(), source=FLOW, times=2)
    list(list_leaves(world.store, world.snapshot(thread)))

    one, inner = branches(world, thread)
    two, three = branches(world, inner)
    assert names(world, thread) == [one, inner, two, three]
    assert list(list_trunks(world.store, world.snapshot(thread))) == [inner, thread]
    assert list(list_leaves(world.store, world.snapshot(thread))) == [one, two, three]
