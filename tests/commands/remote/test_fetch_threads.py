"""A fetch of named threads: they, their branches and the threads around them; nothing else."""

import os
from pathlib import Path

from commands.flows import lists, plays, split_checks
from commands.forging import forge, says
from commands.sharing import Site, empty, refs_of, share
from commands.world import World, replied

from uwf_git.commands.step.step_thread import list_leaves
from uwf_git.errors import UwfError
from uwf_git.model.names import ThreadId
from uwf_git.store.remotes.remotes import add_remote
from uwf_git.store.store import open_store

STRANGER = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T")


def step(site: Site, thread: ThreadId, *, twice: bool = False) -> None:
    """Take a step, or the first, which lists two files, and the one that splits."""
    site.world.reopen()
    if twice:
        site.world.step(thread, lambda _turn: replied(lists(2)), workdir=str(site.world.place))
    site.world.step(thread, plays, command="mine", workdir=str(site.world.place))
    list(list_leaves(site.world.store, site.world.snapshot(thread)))


def test_a_branch_brings_the_threads_around_it_and_not_those_beside(
    world: World, hub: Path
) -> None:
    at = split_checks(world)
    list(list_leaves(world.store, at.tip))
    first, second = at.children
    add_remote(world.store, "origin", str(hub), cwd=str(world.place))
    site = Site(world)
    site.push()
    b = empty(world, str(hub), name="b")

    assert b.fetch("origin", first).failure() is None

    assert set(b.refs()) == {f"threads/{at.thread}", f"threads/{first}"}
    step(b, first)
    assert b.push(first).failure() is None
    assert site.fetch("origin", at.thread).failure() is None
    assert site.find(f"archive/{first}") == b.find(f"archive/{first}")
    assert site.find(f"threads/{second}")


def test_what_is_forged_or_not_there_is_told_and_the_rest_comes(world: World, hub: Path) -> None:
    site, thread = share(world, str(hub))
    good = world.start()
    site.push()
    site.step(thread)
    site.push()
    there = open_store(str(hub), environ=os.environ)
    forge(there, f"refs/threads/{thread}", {-1: says("Uwf-Event: step", "Uwf-Event: split")})
    b = empty(world, str(hub), name="b")

    fetched = b.fetch("origin", thread, good, STRANGER)

    assert fetched.missing == (STRANGER,)
    assert [each.ref for each in fetched.of("refused")] == [f"refs/threads/{thread}"]
    assert set(b.refs()) == {f"threads/{good}"}
    assert refs_of(b.path, "uwf/remotes/origin/threads").keys() == {
        f"uwf/remotes/origin/threads/{good}"
    }
    failure = b.fetch("origin", STRANGER).failure()
    assert isinstance(failure, UwfError)
    assert failure.code == "not-at-remote"
    assert failure.exit_status == 1
