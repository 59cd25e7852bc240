"""Submodules, and files that filters keep elsewhere, in worktrees of branches."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from commands.worktree.project import PAIR, begin_project, commit_all, run, split, worktrees
from commands.world import Git, World, replied
from refusing import refuses

from uwf_git.commands.after import warn_of_worktrees
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.remove import plan_removals, remove_thread
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.model.names import ThreadId

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


def work_apart(world: World, act: Callable[[Path], object]) -> tuple[ThreadId, ThreadId]:
    """Play a thread whose first branch does *act*; return it and that branch."""
    thread, (one, _) = split(world)
    run(world, thread, playing(act))
    return thread, one


def change_file(lib: Path, _git: Git) -> None:
    (lib / "text").write_text("mine\n")


def add_file(lib: Path, _git: Git) -> None:
    (lib / "text").unlink()
    (lib / "new").write_text("mine\n")


def commit(lib: Path, git: Git) -> None:
    change_file(lib, git)
    commit_all(lib, git)


def commit_beside(lib: Path, git: Git) -> None:
    git("switch", "--quiet", "--create", "beside", cwd=lib)
    commit(lib, git)
    git("switch", "--quiet", "--detach", "HEAD^", cwd=lib)


def stash_twice(lib: Path, git: Git) -> None:
    for text in ("mine\n", "other\n"):
        (lib / "text").write_text(text)
        git("stash", "--quiet", cwd=lib)


CHANGES: dict[str, tuple[Callable[[Path, Git], object], str, str]] = {
    # What is done, and where it is then: in which commit, in which file.
    "changed": (change_file, "", "text"),
    "untracked": (add_file, "", "new"),
    "committed": (commit, "", "text"),
    "beside": (commit_beside, "^2", "text"),
    "stashed": (stash_twice, "^@", "text"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("has_own", [True, False], ids=["submodule", "project"])
def test_what_only_a_submodule_has_is_kept(
    world: World, git: Git, library: Path, change: str, *, has_own: bool
) -> None:
    """In the project's own repository of the submodule, or in the project if it has none."""
    assert library.is_dir()
    act, parents, name = CHANGES[change]
    own = world.place / ".git" / "modules" / "lib"
    if not has_own:
        git("submodule", "--quiet", "deinit", "--force", "lib", cwd=world.place)
        shutil.rmtree(own)

    def work(place: Path) -> None:
        git(*FILES, "submodule", "--quiet", "update", "--init", cwd=place)
        act(place / "lib", git)

    thread, one = work_apart(world, work)

    assert worktrees(world, git) == []
    assert warn_of_worktrees(world.store) == []
    keeper = own if has_own else world.place / ".git"
    ref = f"refs/uwf/inner/{one}/lib"
    kept = git("rev-parse", ref, cwd=keeper).strip()
    found = git("rev-parse", f"{ref}{parents}", cwd=keeper).split()
    assert "mine\n" in {git("show", f"{each}:{name}", cwd=keeper) for each in found}
    # The project's commit names it, and says where it is.
    assert git("rev-parse", f"refs/uwf/work/{one}:lib", cwd=world.place).strip() == kept
    said = git("log", "-1", "--format=%B", f"refs/uwf/work/{one}", cwd=world.place)
    assert f"\nlib: {ref} of {keeper}\n\nUwf-Thread: {one}\n" in said
    (shown, _) = show_thread(world.store, thread)["work"]
    assert shown["inner"] == [
        {"path": "lib", "ref": ref, "commit": kept, "repository": str(keeper)}
    ]

    # It goes with the thread.
    (*_, plan) = [each for each in plan_removals(world.store, [thread]) if each.thread == one]
    removed = remove_thread(world.store, world.caller, plan)
    assert removed.work is not None
    assert [each.commit for each in removed.work.inner] == [kept]
    assert git("for-each-ref", "refs/uwf/inner", cwd=keeper) == ""


def test_a_merge_of_the_work_brings_the_submodule_along(
    world: World, git: Git, library: Path
) -> None:
    assert library.is_dir()

    def work(place: Path) -> None:
        git(*FILES, "submodule", "--quiet", "update", "--init", cwd=place)
        change_file(place / "lib", git)

    _, one = work_apart(world, work)

    git("merge", "--quiet", f"refs/uwf/work/{one}", cwd=world.place)
    git("submodule", "--quiet", "update", cwd=world.place)
    assert (world.place / "lib" / "text").read_text() == "mine\n"


@pytest.fixture
def origin(tmp_path: Path, git: Git) -> Path:
    """Return a repository of two commits."""
    origin = tmp_path / "origin"
    git("init", "--quiet", str(origin), cwd=tmp_path)
    for text in ("1", "2"):
        (origin / "text").write_text(text)
        commit_all(origin, git)
    return origin


def test_repositories_of_any_kind_are_kept(world: World, git: Git, origin: Path) -> None:
    """Without a commit, within each other, with odd names, and one with half of its history."""
    begin_project(world, git)

    def work(place: Path) -> None:
        git("init", "--quiet", "empty", cwd=place)
        git("init", "--quiet", ".odd..né me~.lock", cwd=place)
        (place / ".odd..né me~.lock" / "text").write_text("odd")
        # As git-lfs keeps files.
        large = place / ".odd..né me~.lock" / ".git" / "lfs" / "objects" / "ab" / "cd" / "abcd"
        large.parent.mkdir(parents=True)
        large.write_text("large")
        git("init", "--quiet", "a/outer", cwd=place)
        (place / "a" / "outer" / "text").write_text("outer")
        commit_all(place / "a" / "outer", git)
        git("init", "--quiet", "inner", cwd=place / "a" / "outer")
        (place / "a" / "outer" / "inner" / "text").write_text("inner")
        for name in ("half", "read"):
            git("clone", "--quiet", "--depth=1", f"file://{origin}", name, cwd=place)
        (place / "half" / "text").write_text("3")
        commit_all(place / "half", git)
        (place / "half" / "text").write_text("4")

    thread, one = work_apart(world, work)

    assert worktrees(world, git) == []
    kept = {
        each["path"]: each["ref"] for each in show_thread(world.store, thread)["work"][0]["inner"]
    }
    assert set(kept) == {".odd..né me~.lock", "a/outer", "a/outer/inner", "half"}
    assert {path: git("show", f"{ref}:text", cwd=world.place) for path, ref in kept.items()} == {
        ".odd..né me~.lock": "odd",
        "a/outer": "outer",
        "a/outer/inner": "inner",
        "half": "4",
    }
    assert git("show", f"{kept['half']}^1:text", cwd=world.place) == "3"
    assert kept["a/outer/inner"] == f"refs/uwf/inner/{one}/a/outer%2Finner"
    assert git("ls-tree", "-r", f"refs/uwf/work/{one}", cwd=world.place).count("160000 commit") == 4
    assert git("rev-parse", "--is-shallow-repository", cwd=world.place) == "false\n"
    git("fsck", "--strict", cwd=world.place)
    assert Path(world.place, ".git/lfs/objects/ab/cd/abcd").read_text() == "large"


def test_an_edit_in_a_submodule_is_a_change_of_the_work_directory(
    world: World, git: Git, library: Path
) -> None:
    assert library.is_dir()
    (world.place / "lib" / "text").write_text("half done\n")
    thread = world.begun(PAIR)

    with refuses("not-clean", match="uncommitted changes: lib"):
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

    _, one = work_apart(world, work)

    assert seen == ["large\n"]
    assert worktrees(world, git) == []
    ref = f"refs/uwf/work/{one}"
    for name, content in (("large.bin", "larger\n"), ("new.bin", "new\n")):
        assert git("cat-file", "blob", f"{ref}:{name}", cwd=world.place).startswith("pointer ")
        assert git("cat-file", "--filters", f"{ref}:{name}", cwd=world.place) == content
