from pathlib import Path

import pytest
from commands.sharing import Site, another, make_hub, share
from commands.world import World

from uwf_git.commands.remote.fast_forward import EndedElsewhere, fast_forward_from_tracking
from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store


@pytest.fixture
def sites(world: World, tmp_path: Path) -> tuple[Site, Site, ThreadId]:
    """Return two stores that have one thread, shared by a hub."""
    hub = str(make_hub(tmp_path))
    site, thread = share(world, hub)
    site.push()
    return site, another(world, hub), thread


def track(site: Site, other: Site, thread: ThreadId) -> None:
    """Let the tracking refs of *site* say what *other* has, as a plain `git fetch` does."""
    other.push()
    for place, oid in other.refs("threads", "archive").items():
        # The tracking refs of a fetch, without the update of the local refs.
        refs = open_store(str(site.path)).refs
        ref = f"refs/uwf/remotes/origin/{place}"
        seen = refs.find(ref)
        done = refs.create(ref, oid) if seen is None else refs.advance(ref, seen=seen, to=oid)
        assert done
        assert thread in place
    folder = site.path / "objects" / "info"
    folder.mkdir(exist_ok=True)
    (folder / "alternates").write_text(f"{other.path}/objects\n")


def take_over(site: Site, thread: ThreadId) -> bool:
    return fast_forward_from_tracking(open_store(str(site.path)), thread)


def test_what_is_ahead_is_taken_over(sites: tuple[Site, Site, ThreadId]) -> None:
    site, other, thread = sites
    other.step(thread)
    track(site, other, thread)
    assert take_over(site, thread)
    assert site.refs("threads") == other.refs("threads")
    assert not take_over(site, thread)


def test_an_end_elsewhere_is_taken_over(sites: tuple[Site, Site, ThreadId]) -> None:
    site, other, thread = sites
    other.end(thread)
    track(site, other, thread)
    assert take_over(site, thread)
    assert site.refs("threads", "archive") == other.refs("archive")


def test_a_diverged_thread_may_be_stepped(
    sites: tuple[Site, Site, ThreadId],
) -> None:
    site, other, thread = sites
    other.step(thread)
    site.step(thread, ok=True)
    track(site, other, thread)
    before = site.refs("threads")
    assert not take_over(site, thread)
    assert site.refs("threads") == before


def test_a_thread_that_ended_elsewhere_may_not_be_stepped(
    sites: tuple[Site, Site, ThreadId],
) -> None:
    site, other, thread = sites
    other.end(thread)
    site.step(thread, ok=True)
    track(site, other, thread)
    with pytest.raises(EndedElsewhere) as ended:
        take_over(site, thread)
    here = site.find(f"threads/{thread}")
    assert ended.value.exit_status == 4
    assert f"uwf thread fork {thread} --at {here}" in (ended.value.hint or "")


def test_an_invalid_archive_at_a_remote_stops_no_step(sites: tuple[Site, Site, ThreadId]) -> None:
    site, other, thread = sites
    other.step(thread)
    site.step(thread, ok=True)
    track(site, other, thread)
    refs = open_store(str(site.path)).refs
    there = refs.find(f"refs/uwf/remotes/origin/threads/{thread}")
    assert there is not None
    # A server without hooks accepts this from any client.
    refs.create(f"refs/uwf/remotes/origin/archive/{thread}", there)
    assert not take_over(site, thread)


def test_work_that_waits_is_recorded_first(sites: tuple[Site, Site, ThreadId]) -> None:
    site, other, thread = sites
    tip = site.find(f"threads/{thread}")
    other.step(thread)
    track(site, other, thread)
    run = site.path / "uwf" / "run" / thread / str(tip)
    run.mkdir(parents=True)
    (run / "exit").write_text("0\n")
    assert not take_over(site, thread)
    assert site.find(f"threads/{thread}") == tip


def test_nothing_is_looked_for_without_a_remote(world: World) -> None:
    thread = world.begun()
    assert not fast_forward_from_tracking(world.store, thread)


def test_a_tracking_ref_that_is_broken_stops_no_step(
    sites: tuple[Site, Site, ThreadId],
) -> None:
    site, _other, thread = sites
    path = site.path / "refs" / "uwf" / "remotes" / "origin" / "threads" / thread
    path.write_text("nonsense\n")
    assert not take_over(site, thread)
