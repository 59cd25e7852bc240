"""Random edits of real projects (build/projects, which .ci/run fetches), each step restored."""

import random
import shutil
import tarfile
from pathlib import Path

import pytest
from commands.step.test_ending import edits, files_of, user_state
from commands.worktree.project import commit_all
from commands.world import Git, World

from uwf_git.commands.control.files import restore_files

PROJECTS = Path(__file__).parents[3] / "build" / "projects"
STEPS = 6


def edit(place: Path, chance: random.Random) -> None:
    """Change, remove, move and make files, as an agent may."""
    files = sorted(each for each in place.rglob("*") if each.is_file() and ".git" not in each.parts)
    changed, gone, moved, linked, script = chance.sample(files, 5)
    changed.write_bytes(changed.read_bytes()[: chance.randrange(400)] + chance.randbytes(40))
    gone.unlink()
    moved.rename(moved.with_name(f"{moved.name} {chance.randrange(100)}\u00e9"))
    linked.unlink()
    linked.symlink_to("elsewhere")
    script.chmod(0o755)
    (place / f"new-{chance.randrange(10**6)}" / "deep").mkdir(parents=True)
    (place / f"made-{chance.randrange(10**6)}").write_text("made\n" * chance.randrange(500))


def read_tree(place: Path) -> dict[str, object]:
    """Return all files of a project, with what is in them."""
    found = (each for each in place.rglob("*") if ".git" not in each.relative_to(place).parts)
    return {
        str(each.relative_to(place)): each.readlink()
        if each.is_symlink()
        else (each.read_bytes(), each.stat().st_mode & 0o100)
        for each in found
        if each.is_symlink() or each.is_file()
    }


@pytest.mark.parametrize("name", ["click", "requests"])
def test_each_step_of_a_real_project_comes_back(name: str, world: World, git: Git) -> None:
    archives = sorted(PROJECTS.glob(f"{name}-*.tar.gz"))
    if not archives:
        pytest.skip("there is no build/projects; .ci/run fetches it")
    with tarfile.open(archives[-1]) as archive:
        archive.extractall(world.place, filter="data")
    (inner,) = (each for each in world.place.iterdir() if each.name.startswith(name))
    shutil.copytree(inner, world.place, dirs_exist_ok=True, symlinks=True)
    shutil.rmtree(inner)
    git("init", "--quiet", cwd=world.place)
    commit_all(world.place, git)
    before, chance, thread = user_state(world.place, git), random.Random(name), world.begun()
    trees, commits = [], []
    for _ in range(STEPS):
        world.step(thread, edits(lambda place: edit(place, chance)))
        assert len(files_of(world, thread)) == 2
        trees.append(read_tree(world.place))
        commits.append(world.tip(thread))
    assert user_state(world.place, git) == before

    for number in chance.sample(range(STEPS), STEPS):
        restore_files(world.store, world.caller, thread, commits[number])
        assert read_tree(world.place) == trees[number]
    assert user_state(world.place, git) == before
    world.assert_whole()
