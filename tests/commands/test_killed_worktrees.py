"""Engines killed at every moment: no edit of a branch is lost, and no worktree stays."""

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from commands.killed import digest_of, user_folder
from commands.worktree.project import begin_split, run, worktrees, writer
from commands.world import Git, World, replied
from store.killing import dies_at, moments_of

from uwf_git.commands.turn.branches import ThreadNotActive, begin_branch
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.names import ThreadId


def kill_everywhere(world: World, action: Callable[[], object], after: Callable[[], None]) -> int:
    """Kill *action* at every moment, each time from the same files, and check *after* each."""
    # The user has files about the project as well.
    places = (Path(world.store.path), world.place, user_folder(world.store).parent)
    kept = [place.with_name(f"{place.name}.kept") for place in places]
    for place, copy in zip(places, kept, strict=True):
        place.mkdir(parents=True, exist_ok=True)
        shutil.copytree(place, copy, symlinks=True)

    def reset() -> None:
        for place, copy in zip(places, kept, strict=True):
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(copy, place, symlinks=True)
        world.reopen()

    states: set[str] = set()
    moments = moments_of(action)
    for number, moment in enumerate(moments, start=1):
        reset()
        try:
            assert dies_at(number, action)
            state = "".join(digest_of(str(place)) for place in places)
            if state not in states:
                world.reopen()
                after()
            states.add(state)
        except BaseException as error:
            error.add_note(f"killed before moment {number} of {len(moments)}: {moment}")
            raise
    print(f"{len(moments)} kills, {len(states)} states")  # noqa: T201 - for `pytest -rA`
    return len(moments)


def split(world: World, git: Git) -> tuple[ThreadId, list[ThreadId]]:
    thread, branches = begin_split(world, git)
    for number in range(2):
        begin_branch(world.store, world.snapshot(thread), number)
    return thread, branches


def test_the_end_of_a_branch_killed_anywhere(world: World, git: Git) -> None:
    thread, (one, two) = split(world, git)
    write = writer()

    def play(turn: Turn) -> Played:
        if turn.role == "one":
            # A repository that only the worktree has.
            git("init", "--quiet", "inner", cwd=turn.workdir)
            Path(turn.workdir, "inner", "text").write_text("inside")
        return write(turn)

    world.step(thread, play)

    def check() -> None:
        run(world, thread, writer())
        for branch, notes in ((one, "begun\none\n"), (two, "begun\ntwo\nthree\n")):
            assert git("show", f"refs/uwf/work/{branch}:notes", cwd=world.place) == notes
        inner = git("rev-parse", f"refs/uwf/inner/{one}/inner", cwd=world.place)
        assert git("rev-parse", f"refs/uwf/work/{one}:inner", cwd=world.place) == inner
        assert git("show", f"{inner.strip()}:text", cwd=world.place) == "inside"
        assert worktrees(world, git) == []

    assert kill_everywhere(world, lambda: world.step(one), check) > 20


def test_a_kill_of_a_branch_killed_anywhere(world: World, git: Git) -> None:
    thread, (_, two) = split(world, git)
    world.step(thread, writer())

    def kill() -> None:
        world.kill(two, reason="enough")

    def check() -> None:
        with suppress(ThreadNotActive):
            kill()
        run(world, thread, writer())
        assert git("show", f"refs/uwf/work/{two}:two.new", cwd=world.place) == "two"
        assert worktrees(world, git) == []

    assert kill_everywhere(world, kill, check) > 20


def test_the_first_step_of_a_branch_killed_anywhere(world: World, git: Git) -> None:
    thread, (one, _) = split(world, git)

    def play(turn: Turn) -> Played:
        # What is half made is never what an agent finds.
        assert Path(turn.workdir, "part", "deep").read_text() == "deep\n"
        return replied({})

    def check() -> None:
        run(world, thread, play)
        assert worktrees(world, git) == []
        git("rev-parse", "--verify", f"refs/uwf/work/{one}", cwd=world.place)

    assert kill_everywhere(world, lambda: world.step(one, play), check) > 20
