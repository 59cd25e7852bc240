"""Submodules, and files that filters keep elsewhere, in worktrees of branches."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commands.worktree.project import PAIR, Git, begin_project, children, commit_all, run, worktrees
from commands.world import World, replied

from uwf_git.commands.admin.gc import gc_store
from uwf_git.commands.after import warn_of_worktrees
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.commands.worktree.repository import NotClean
from uwf_git.model.thread_id import ThreadId

FILES = ("-c", "protocol.file.allow=always")

# As git-lfs does: the content lies beside the objects, by its hash, and the tree has a pointer.
FILTER = """\
kept=$(git rev-parse --git-common-dir)/kept && mkdir -p "$kept" || exit 1
if [ "$1" = clean ]; then
  cat > "$kept/new.$$" && hash=$(cksum < "$kept/new.$$" | tr ' ' -) || exit 1
  mv "$kept/new.$$" "$kept/$hash" && printf 'pointer %s\\n' "$hash"
else
  read -r _ hash && cat "$kept/$hash"
fi
"""


@pytest.fixture
def library(world: World, git: Git) -> Path:
    """Return a project that has a library as its submodule `lib`; return the library."""
    library = world.place.parent / "library"
    library.mkdir()
    git("init", "--quiet", cwd=library)
    (library / "text").write_text("theirs\n")
    commit_all(library, git)
    begin_project(world, git)
    git(*FILES, "submodule", "--quiet", "add", str(library), "lib", cwd=world.place)
    commit_all(world.place, git)
    return library


def playing(act: Callable[[Path], object]) -> Player:
    """Return a player; the first branch's does *act* in its worktree."""

    def play(turn: Turn) -> Played:
        if turn.role == "one":
            act(Path(turn.workdir))
        return replied({})

    return play


def begin(world: World) -> ThreadId:
    thread = world.begun(PAIR)
    world.step(thread)
    return thread


def test_submodules_are_empty_until_an_agent_wants_them(
    world: World, git: Git, library: Path
) -> None:
    assert library.is_dir()
    seen: list[object] = []

    def build(place: Path) -> None:
        seen.append(list((place / "lib").iterdir()))
        git(*FILES, "submodule", "--quiet", "update", "--init", cwd=place)
        seen.append((place / "lib" / "text").read_text())

    thread = begin(world)
    one, _ = children(world.snapshot(thread))
    run(world, thread, playing(build))

    assert seen == [[], "theirs\n"]
    # Nothing in it was only there.
    assert worktrees(world, git) == []
    assert git("diff", "HEAD", f"refs/uwf/work/{one}", "--stat", cwd=world.place) == ""


@pytest.mark.parametrize(
    "change",
    [
        lambda lib, _git: (lib / "text").write_text("mine\n"),
        lambda lib, _git: (lib / "new").write_text("mine\n"),
        lambda lib, git: git("commit", "--quiet", "--allow-empty", "-m", "mine", cwd=lib),
        lambda lib, git: (
            (lib / "text").write_text("mine\n"),
            git("stash", "--quiet", cwd=lib),
        ),
    ],
    ids=["changed", "untracked", "committed", "stashed"],
)
def test_a_worktree_stays_whose_submodule_has_what_is_nowhere_else(
    world: World, git: Git, library: Path, change: Callable[[Path, Git], object]
) -> None:
    def work(place: Path) -> None:
        git(*FILES, "submodule", "--quiet", "update", "--init", cwd=place)
        change(place / "lib", git)

    run(world, begin(world), playing(work))
    (stays,) = worktrees(world, git)
    inner = Path(stays, "lib")
    (told,) = warn_of_worktrees(world.store)
    assert f" {inner} has what no commit" in told
    gc_store(world.store, world.caller.environ)
    assert worktrees(world, git) == [stays]
    assert warn_of_worktrees(world.store) == []

    # What a person then takes away, or pushes, is no reason any more.
    git("add", "--all", cwd=inner)
    git("commit", "--quiet", "--allow-empty", "-m", "all", cwd=inner)
    git("push", "--quiet", "origin", "HEAD:refs/heads/mine", cwd=inner)
    git("stash", "clear", cwd=inner)
    gc_store(world.store, world.caller.environ)

    assert worktrees(world, git) == []
    assert git("log", "--format=%s", "-1", "mine", cwd=library) == "all\n"


def test_an_edit_in_a_submodule_is_a_change_of_the_work_directory(
    world: World, git: Git, library: Path
) -> None:
    assert library.is_dir()
    (world.place / "lib" / "text").write_text("half done\n")
    thread = world.begun(PAIR)

    with pytest.raises(NotClean, match="uncommitted changes: lib"):
        world.step(thread)


def test_files_that_a_filter_keeps_elsewhere_are_kept(world: World, git: Git) -> None:
    program = world.program(FILTER, name="filter.tmp")
    begin_project(world, git)
    for way in ("clean", "smudge"):
        git("config", f"filter.kept.{way}", f"{program} {way}", cwd=world.place)
    git("config", "filter.kept.required", "true", cwd=world.place)
    (world.place / ".gitattributes").write_text("*.bin filter=kept\n")
    (world.place / "large.bin").write_text("large\n")
    commit_all(world.place, git)
    seen: list[str] = []

    def work(place: Path) -> None:
        seen.append((place / "large.bin").read_text())
        (place / "large.bin").write_text("larger\n")
        (place / "new.bin").write_text("new\n")

    thread = begin(world)
    one, _ = children(world.snapshot(thread))
    run(world, thread, playing(work))

    assert seen == ["large\n"]
    assert worktrees(world, git) == []
    ref = f"refs/uwf/work/{one}"
    for name, content in (("large.bin", "larger\n"), ("new.bin", "new\n")):
        assert git("cat-file", "blob", f"{ref}:{name}", cwd=world.place).startswith("pointer ")
        assert git("cat-file", "--filters", f"{ref}:{name}", cwd=world.place) == content
