"""A fetch, a push or a clone that is killed at any moment: the same command simply works."""

import os
import shutil
from pathlib import Path

import pytest
from commands.sharing import Site, another, make_hub, refs_of, share
from commands.world import Git, World
from store.killing import dies_at, moments_of

from uwf_git.commands.remote.fetch import clone_store
from uwf_git.store.locks import break_dead_locks
from uwf_git.store.store import open_store

MOST_TRIED = 12


def some(moments: list[str]) -> range:
    """Choose moments from the first to the last: all if there are few, else evenly."""
    assert len(moments) > 20
    return range(1, len(moments) + 1, max(1, -(-len(moments) // MOST_TRIED)))


@pytest.fixture
def sites(world: World, tmp_path: Path) -> tuple[Site, Site, Path]:
    """Return a store, another that is ahead of it in every way, and the hub between them."""
    hub = make_hub(tmp_path)
    site, thread = share(world, str(hub))
    ended = world.start()
    site.push()
    other = another(world, str(hub))
    other.step(thread)
    other.end(ended)
    other.world.start()
    return site, other, hub


def restored(path: Path) -> Path:
    """Put the repository at *path* back to how it was when this was first called."""
    kept = path.with_name(f"{path.name}.kept")
    if not kept.exists():
        shutil.copytree(path, kept, symlinks=True)
    shutil.rmtree(path)
    shutil.copytree(kept, path, symlinks=True)
    return path


def sound(git: Git, *paths: Path) -> None:
    for path in paths:
        git("fsck", "--strict", "--no-dangling", "--no-progress", cwd=path)
        # Leftover locks are marked as ours: the next process, or `uwf gc`, removes them.
        break_dead_locks(str(path))
        assert [lock for lock in path.rglob("*.lock") if "uwf" not in lock.parts] == []


def test_a_fetch_that_was_killed_is_done_again(sites: tuple[Site, Site, Path], git: Git) -> None:
    site, other, _hub = sites
    other.push()
    restored(site.path)
    moments = moments_of(site.fetch)
    for moment in some(moments):
        restored(site.path)
        assert dies_at(moment, site.fetch), moments[moment - 1]
        assert site.fetch().failure() is None, moments[moment - 1]
        assert site.refs() == other.refs()
        assert os.listdir(site.path / "uwf" / "incoming") == []
        sound(git, site.path)


def test_a_push_that_was_killed_is_done_again(sites: tuple[Site, Site, Path], git: Git) -> None:
    _site, other, hub = sites
    restored(other.path)
    restored(hub)
    moments = moments_of(other.push)
    for moment in some(moments):
        restored(other.path)
        restored(hub)
        assert dies_at(moment, other.push), moments[moment - 1]
        # What git does for a client that is gone may still be under way.
        while other.push().failure() is not None:
            other.fetch()
        assert refs_of(hub) == other.refs()
        sound(git, other.path, hub)


def test_a_clone_that_was_killed_leaves_no_half_of_one(
    sites: tuple[Site, Site, Path], git: Git, tmp_path: Path
) -> None:
    site, other, hub = sites
    other.push()
    place = tmp_path / "clones"
    place.mkdir()

    def clone() -> None:
        clone_store(site.world.caller, str(hub), str(place / "copy.git"))

    moments = moments_of(clone)
    for moment in some(moments):
        shutil.rmtree(place)
        place.mkdir()
        assert dies_at(moment, clone), moments[moment - 1]
        if not (place / "copy.git").exists():
            clone()
        assert refs_of(place / "copy.git") == other.refs()
        assert open_store(str(place / "copy.git")).config.get("remote.origin.url") == str(hub)
        sound(git, place / "copy.git")
