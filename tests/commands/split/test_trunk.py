"""Which branches work in a worktree of their own, and in whose."""

from commands.worktree.project import ITEMS, Git, begin_project, children, writer
from commands.world import World

from uwf_git.commands.split.family import find_isolation, find_owner


def test_branches_and_those_around_them(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.begun(ITEMS)
    world.step(thread)
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
