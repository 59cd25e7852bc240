"""A project under git, and workflows whose branches work apart in worktrees of it."""

import os
from pathlib import Path
from typing import Any

from commands.world import Git, World, replied

from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.commands.worktree.record import Inner, Worktree
from uwf_git.commands.worktree.repository import write_tree
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.history import Snapshot

PAIR = """\
name: apart
description: Two write the same file, each for itself.
root:
  type: sequential
  nodes:
    - type: parallel
      name: both
      isolation: worktree
      nodes:
        - {type: agent, agentId: one, output: first}
        - type: sequential
          nodes:
            - {type: agent, agentId: two, output: second}
            - {type: agent, agentId: three, output: third}
    - {type: agent, agentId: closer, output: done}
"""

ITEMS = """\
name: apart-items
description: A worktree for each item, and one more inside.
initialState: {names: [a, b]}
root:
  type: map
  over: state.names
  as: file
  isolation: worktree
  nodes:
    - type: parallel
      name: inner
      nodes:
        - {type: agent, agentId: one, output: first}
        - {type: agent, agentId: two, output: second}
"""


def begin_project(world: World, git: Git) -> str:
    """Make the place of the world a repository with one commit; return the commit."""
    git("init", "--quiet", "--initial-branch=main", cwd=world.place)
    (world.place / "notes").write_text("begun\n")
    (world.place / ".gitignore").write_text("*.tmp\n")
    (world.place / "part").mkdir()
    (world.place / "part" / "deep").write_text("deep\n")
    return commit_all(world.place, git)


def split(world: World, source: str = PAIR) -> tuple[ThreadId, list[ThreadId]]:
    """Begin a thread that splits; return it and its branches."""
    thread = world.stepped(source=source)
    return thread, children(world.snapshot(thread))


def begin_split(world: World, git: Git, source: str = PAIR) -> tuple[ThreadId, list[ThreadId]]:
    """Begin the project, and a thread in it that splits."""
    begin_project(world, git)
    return split(world, source)


def commit_all(place: Path | str, git: Git) -> str:
    """Commit everything; return the commit."""
    git("add", "--all", cwd=place)
    git("commit", "--quiet", "-m", "a person's", cwd=place)
    return git("rev-parse", "HEAD", cwd=place).strip()


def write_all(worktree: Worktree) -> tuple[str, tuple[Inner, ...]]:
    """Write the tree of a worktree in which no secret is."""
    base, git_dir = worktree.base, worktree.git_dir
    tree, inner, _ = write_tree(
        os.environ,
        worktree,
        git_dir=git_dir,
        head=base,
        tip=base,
        tell_secret=lambda _path, _status: None,
    )
    return tree, inner


def writer(places: dict[str, str] | None = None) -> Player:
    """Return a player that appends its role to `notes`, and notes where it ran."""

    def play(turn: Turn) -> Played:
        if places is not None:
            places[f"{turn.role}{turn.present.state.get('file', '')}"] = turn.workdir
        with Path(turn.workdir, "notes").open("a") as notes:
            notes.write(turn.role + "\n")
        Path(turn.workdir, f"{turn.role}.new").write_text(turn.role)
        return replied({}, turn.role)

    return play


def run(world: World, thread: ThreadId, play: Player, *, most: int = 20, **said: Any) -> list[str]:
    """Step a thread to its end; return what each step said."""
    told: list[str] = []
    for _ in range(most):
        done = world.step(thread, play, **said)
        told.append(done.said)
        if done.status == "completed":
            return told
    raise AssertionError(f"it does not end: {told}")


def children(snapshot: Snapshot) -> list[ThreadId]:
    """List the branches of a thread that has split."""
    split = snapshot.get_present().split
    assert split is not None
    return [child.thread for child in split.children]


def worktrees(world: World, git: Git) -> list[str]:
    """List the worktrees that git knows of the project, but for the project itself."""
    told = git("worktree", "list", "--porcelain", cwd=world.place)
    paths = [
        line.removeprefix("worktree ") for line in told.splitlines() if line[:9] == "worktree "
    ]
    return [path for path in paths if os.path.realpath(path) != os.path.realpath(world.place)]
