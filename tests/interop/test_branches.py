"""Branches as git sees them: drawn as FORMAT.md draws them, whole, and however many there are."""

from collections.abc import Callable
from pathlib import Path

from commands.flows import CHECKS, plays
from commands.world import World

Git = Callable[..., str]

FORMAT = Path(__file__).parents[2] / "uwf_git/store/FORMAT.md"
MANY = 1_000


def test_git_draws_branches_as_the_format_says(world: World, git: Git) -> None:
    thread = world.begun(CHECKS)
    while world.step(thread, plays).status != "completed":
        pass
    ref, where = f"refs/archive/{thread}", world.store.path

    graph = git("log", "--graph", "--format=%s", ref, cwd=where)
    own = git("log", "--first-parent", "--format=%s", ref, cwd=where)

    drawn = [line.rstrip() for line in graph.splitlines()]
    assert "\n".join(drawn) in FORMAT.read_text(encoding="utf-8")
    assert own.rstrip() in FORMAT.read_text(encoding="utf-8")
    assert git("fsck", "--strict", "--no-dangling", cwd=where) == ""
