import os
import stat
from pathlib import Path

import pytest
from commands.sharing import Shared, another, failure_of, refs_of, share
from commands.world import Git, World
from refusing import is_refused
from store.small_packs import packs_in, write_blobs

from uwf_git.errors import Refused
from uwf_git.store.packing import MOST_PACKS
from uwf_git.store.store import NotAStore, open_store


@pytest.fixture
def shared(world: World, hub: Path) -> Shared:
    """Return a site where no git is installed."""
    world.caller = world.caller._replace(environ={**os.environ, "PATH": ""})
    return share(world, str(hub))


def test_threads_are_shared_without_git(shared: Shared, world: World, hub: Path, git: Git) -> None:
    site, thread = shared
    assert site.push().failure() is None
    assert refs_of(hub) == site.refs()
    other = another(world, str(hub))
    assert other.refs() == site.refs()
    other.end(thread)
    assert [change.status for change in other.push().pushed] == ["archived", "deleted"]
    assert [each.event for each in site.fetch().reconciled] == ["archived"]
    assert refs_of(hub) == site.refs() == other.refs()
    assert site.push().pushed == []
    assert git("fsck", "--strict", cwd=hub) == ""


def test_the_rules_of_a_shared_store_hold_without_hooks(
    shared: Shared, world: World, hub: Path
) -> None:
    site, thread = shared
    good = world.start()
    # A thread whose commits name another thread.
    tip = site.find(f"threads/{thread}")
    assert tip is not None
    bad = "01J7K9M2XNPQR5VWBCDF8G3H4T"
    assert world.store.refs.create(f"refs/threads/{bad}", tip)
    failure = failure_of(site.push(), "push-refused", Refused)
    assert failure.facts["refs"] == [f"refs/threads/{bad}"]
    assert thread in failure.message
    assert set(refs_of(hub)) == {f"threads/{thread}", f"threads/{good}", "workflows/demo"}


def test_group_may_write_what_a_push_makes(shared: Shared, hub: Path, git: Git) -> None:
    git("config", "core.sharedRepository", "group", cwd=hub)
    before = os.umask(0o022)
    try:
        assert shared[0].push().failure() is None
    finally:
        os.umask(before)

    made = [path for path in (hub / "refs").rglob("*") if "workflows" in path.parts]
    assert made
    assert [path.name for path in made if not path.stat().st_mode & stat.S_IWGRP] == []


def test_the_faster_push_wins(shared: Shared, world: World, hub: Path) -> None:
    site, thread = shared
    site.push()
    other = another(world, str(hub))
    other.step(thread)
    other.push()
    site.step(thread, ok=True)
    assert is_refused(site.push().failure(), "fetch-first")
    assert refs_of(hub, "threads") == other.refs("threads")


def test_a_place_without_a_repository_is_named(shared: Shared, hub: Path) -> None:
    hub.rename(hub.with_name("elsewhere.git"))
    with pytest.raises(NotAStore, match=str(hub)):
        shared[0].push()


def test_a_push_unites_the_packs_of_those_before(shared: Shared, world: World, hub: Path) -> None:
    site, _thread = shared
    site.push()
    there = open_store(str(hub))
    write_blobs(there, MOST_PACKS)
    world.step(world.start())
    assert site.push().failure() is None
    assert len(packs_in(there)) <= 2
