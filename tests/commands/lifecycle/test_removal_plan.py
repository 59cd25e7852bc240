"""Which threads go with a thread that is removed: its branches, joined or not, and their work."""

from pathlib import Path

import pytest
from commands.flows import FILES, Split, finish, lists, plays
from commands.worktree.project import PAIR, begin_project, children, run, writer
from commands.world import Git, World, replied
from refusing import refuses

from uwf_git.commands.remove import plan_removals, remove_thread
from uwf_git.commands.step.ending import end_by_kill
from uwf_git.model.names import ThreadId

INNER = "{type: parallel, nodes: [{type: agent, agentId: one}, {type: agent, agentId: two}]}"
NESTED = FILES.replace("{type: agent, agentId: reader}", INNER)


def refs(world: World, git: Git, place: Path | None = None) -> list[str]:
    return git(
        "for-each-ref", "--format=%(refname)", "refs/threads", "refs/archive", "refs/uwf",
        cwd=place or Path(world.store.path),
    ).splitlines()  # fmt: skip


def names(world: World, thread: ThreadId) -> list[str]:
    """List the files of the store that are called after a thread."""
    return [str(path) for path in Path(world.store.path).rglob(f"*{thread}*")]


def test_branches_and_theirs_go_along_after_the_join(world: World, git: Git) -> None:
    thread = world.stepped(lambda _turn: replied(lists(2)), source=NESTED)
    finish(world, thread)
    assert len(refs(world, git)) == 1 + 2 + 4

    removed = world.remove(thread)

    assert [each.removal.thread for each in removed][-1] == thread
    assert len(removed) == 1 + 2 + 4
    assert refs(world, git) == []
    assert names(world, thread) == []


def test_branches_that_a_kill_left_are_listed_and_stay(
    world: World, split: Split, git: Git
) -> None:
    first, second = split.children
    end_by_kill(world.store, world.caller, split.thread, reason="")
    before = refs(world, git)

    with refuses("branches-still-active", match=f"2 branches of .*: .*{first}") as caught:
        plan_removals(world.store, [split.thread])

    assert caught.value.facts["branches"] == sorted([first, second], reverse=True)
    assert refs(world, git) == before
    with pytest.raises(Exception, match="is killed"):
        world.step(first, plays)
    assert len(world.remove(split.thread)) == 3


def test_a_branch_that_is_to_be_joined_stays(world: World, split: Split) -> None:
    child = split.children[0]
    finish(world, child)

    with refuses("branch-not-joined", match=f"{child} is a branch that thread {split.thread}"):
        plan_removals(world.store, [child])

    finish(world, split.thread)
    assert [each.removal.thread for each in world.remove(child)] == [child]
    world.assert_whole()


def test_a_removal_that_was_cut_short_is_repeated(world: World, split: Split, git: Git) -> None:
    finish(world, split.thread)
    remove_thread(world.store, world.caller, plan_removals(world.store, [split.thread])[0])

    assert len(world.remove(split.thread)) == 2
    assert refs(world, git) == []


def test_a_fork_does_not_take_the_branches_of_the_other_thread_along(
    world: World, split: Split, git: Git
) -> None:
    finish(world, split.thread)
    forked = world.fork(split.thread, "2")
    world.kill(forked)

    assert [each.removal.thread for each in world.remove(forked)] == [forked]
    assert len(refs(world, git)) == 3


def test_what_does_not_name_its_parent_stays(world: World, split: Split, git: Git) -> None:
    child = split.children[0]
    finish(world, split.thread)
    stranger = world.begun()
    world.kill(stranger)
    git("update-ref", f"refs/archive/{child}", f"refs/archive/{stranger}", cwd=world.store.path)

    planned = [each.thread for each in plan_removals(world.store, [split.thread])]

    assert child not in planned
    assert len(planned) == 2


def test_the_work_of_its_branches_goes_along(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.stepped(source=PAIR)
    branches = children(world.snapshot(thread))
    run(world, thread, writer())
    # The closer worked in the project itself.
    work = [f"refs/uwf/work/{each}" for each in (thread, *branches)]
    assert refs(world, git, world.place) == work

    removed = {each.removal.thread: each.work for each in world.remove(thread)}

    assert refs(world, git, world.place) == []
    assert names(world, thread) == names(world, branches[0]) == []
    assert removed[thread] is not None
    told = removed[branches[0]]
    assert told is not None
    git("update-ref", told.ref, told.commit, cwd=Path(told.repository))
    assert git("show", f"{work[1]}:notes", cwd=world.place) == "begun\none\n"
