"""What is left of a branch that worked apart goes when its thread is removed."""

from pathlib import Path

from commands.worktree.project import PAIR, Git, begin_project, children, run, worktrees, writer
from commands.world import World
from refusing import refuses

from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.turn.branches import begin_branch
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.local_files import find_workdir


def works(world: World, git: Git) -> list[str]:
    """List the refs of works in the project."""
    listed = git("for-each-ref", "--format=%(refname)", "refs/uwf", cwd=world.place)
    return listed.splitlines()


def test_a_joined_branch_alone_takes_its_own_work_along(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.begun(PAIR)
    world.step(thread)
    one, two = children(world.snapshot(thread))
    run(world, thread, writer())

    world.remove(one)

    # The closer worked in the project itself.
    assert works(world, git) == [f"refs/uwf/work/{each}" for each in (thread, two)]
    assert [each["thread"] for each in show_thread(world.store, thread)["work"]] == [two]

    world.remove(thread)

    assert works(world, git) == []
    assert find_workdir(world.store, thread) is None


def test_the_refs_of_a_project_that_was_renamed_go_as_well(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.begun(PAIR)
    run(world, thread, writer())
    place = world.place.rename(world.place.parent / "renamed")

    world.caller = world.caller._replace(cwd=str(place))
    assert all(removed.work for removed in world.remove(thread))

    assert git("for-each-ref", "refs/uwf", cwd=place) == ""


def test_a_branch_whose_worktree_has_to_stay_stays_as_well(world: World, git: Git) -> None:
    begin_project(world, git)
    thread = world.begun(PAIR)
    world.step(thread)
    one, _ = children(world.snapshot(thread))
    begin_branch(world.store, world.snapshot(thread), 0)
    places: dict[str, str] = {}
    world.step(one, writer(places))
    Path(places["one"], "late").touch()
    locked = world.place / ".git" / "refs" / "uwf" / "work" / f"{one}.lock"
    locked.parent.mkdir(parents=True, exist_ok=True)
    locked.touch()
    world.kill(thread)
    assert worktrees(world, git) == [places["one"]]

    with refuses("worktree-stays", match="is still there"):
        world.remove(one)

    assert get_head(world.store, one).archived
    locked.unlink()
    world.remove(one)
    assert worktrees(world, git) == []
