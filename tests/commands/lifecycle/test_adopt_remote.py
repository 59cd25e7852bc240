from functools import partial
from pathlib import Path

import pytest
from commands.killed import copy_of
from commands.sharing import Site, Sites, failure_of
from commands.world import Git, World
from refusing import is_refused
from store.killing import dies_at, moments_of

from uwf_git.commands.remove import adopt_remote_history
from uwf_git.commands.start import Forked, ForkRequest, fork_thread
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.remotes.remotes import add_remote
from uwf_git.store.threads.local_files import has_lock_file, lock_thread


def part(sites: Sites, *, ended: bool = False) -> tuple[Oid, Oid]:
    """Let the two sides diverge, and return the heads: here and there."""
    site, other, thread = sites
    if ended:
        other.end(thread)
    else:
        other.step(thread)
    other.push()
    site.step(thread, ok=True)
    site.fetch()
    here = site.find(f"threads/{thread}")
    there = other.find(f"archive/{thread}" if ended else f"threads/{thread}")
    assert here is not None
    assert there is not None
    assert here != there
    return here, there


def fork(site: Site, thread: ThreadId, at: str | None = None) -> Forked:
    site.world.reopen()
    request = ForkRequest(thread, at)
    return fork_thread(site.world.store, site.world.caller, request, thread=site.world.new_id())


def assert_agree(site: Site, other: Site) -> None:
    """Check that nothing parts the two any more."""
    assert site.fetch().failure() is None
    assert site.push().failure() is None
    assert other.fetch().failure() is None
    assert other.refs("threads", "archive") == site.refs("threads", "archive")
    site.world.assert_whole()


def test_fork_keeps_what_is_here_and_the_thread_goes_on_as_it_is_there(sites: Sites) -> None:
    site, other, thread = sites
    here, there = part(sites)

    forked = fork(site, thread)

    assert forked.follows == "origin"
    assert forked.at == here
    assert site.find(f"threads/{thread}") == there
    assert_agree(site, other)


def test_thread_that_has_ended_there_ends_here(sites: Sites) -> None:
    site, _other, thread = sites
    _here, there = part(sites, ended=True)

    assert fork(site, thread).follows == "origin"

    assert site.find(f"threads/{thread}") is None
    assert site.find(f"archive/{thread}") == there
    assert site.fetch().failure() is None


def test_thread_that_has_ended_on_both_sides_has_the_end_that_it_has_there(
    sites: Sites, git: Git
) -> None:
    site, other, thread = sites
    other.end(thread)
    other.push()
    site.step(thread, ok=True)
    site.end(thread)
    assert site.fetch().failure() is not None
    here, there = (each.find(f"archive/{thread}") for each in (site, other))
    assert here not in {None, there}

    forked = fork(site, thread)

    assert (forked.follows, forked.at) == ("origin", here)
    assert site.find(f"archive/{thread}") == there
    assert site.find(f"threads/{thread}") is None
    assert not has_lock_file(site.world.store, thread)
    assert_agree(site, other)
    git("pack-refs", "--all", cwd=site.path)
    assert site.find(f"archive/{thread}") == there


def test_thread_that_ended_here_alone_goes_on_as_it_is_there(sites: Sites) -> None:
    site, other, thread = sites
    other.step(thread)
    other.push()
    site.step(thread, ok=True)
    site.end(thread)
    assert site.fetch().failure() is not None
    here, there = site.refs("archive"), other.refs("threads")
    at = here[f"archive/{thread}"]

    def follow(copy: World) -> None:
        adopt_remote_history(copy.store, copy.caller, thread, kept=at)

    for number in range(1, len(moments_of(partial(follow, copy_of(site.world)))) + 1):
        copy = copy_of(site.world)
        assert dies_at(number, partial(follow, copy))
        Site(copy).fetch()
        assert Site(copy).refs("threads", "archive") in (here, there)
    forked = fork(site, thread)

    assert (forked.follows, forked.at) == ("origin", at)
    assert_agree(site, other)
    assert site.find(f"threads/{thread}") == there[f"threads/{thread}"]


def test_thread_that_is_killed_on_its_way_into_the_archive_is_never_two(sites: Sites) -> None:
    site, _other, thread = sites
    here, there = part(sites, ended=True)

    def follow(copy: World) -> None:
        adopt_remote_history(copy.store, copy.caller, thread, kept=here)

    moments = moments_of(partial(follow, copy_of(site.world)))
    for number in range(1, len(moments) + 1):
        copy = copy_of(site.world)
        assert dies_at(number, partial(follow, copy))
        copy.reopen()
        active = copy.store.refs.find(f"refs/threads/{thread}")
        archived = copy.store.refs.find(f"refs/archive/{thread}")
        assert archived in {None, there}
        if archived is not None or active != here:
            assert active in {None, there}
            assert Site(copy).fetch().failure() is None
            assert Site(copy).refs("threads", "archive") == {f"archive/{thread}": there}
    assert len(moments) > 20


def test_fork_of_another_commit_moves_nothing(sites: Sites) -> None:
    site, _other, thread = sites
    here, there = part(sites)

    assert fork(site, thread, at="1").follows is None
    assert fork(site, thread, at=there).follows is None

    assert site.find(f"threads/{thread}") == here
    assert is_refused(site.push().failure(), "push-diverged")


@pytest.mark.parametrize("more", [0, 1])
def test_thread_that_agrees_with_one_of_two_remotes_does_not_go_round_in_a_circle(
    sites: Sites, more: int
) -> None:
    site, other, thread = sites
    # As if it were another hub.
    add_remote(site.world.store, "b", str(other.path), cwd="/")
    other.step(thread)
    site.step(thread, ok=True)
    site.push(remote="origin")
    for _ in range(more):
        site.step(thread, ok=True)
    here, there = (each.find(f"threads/{thread}") for each in (site, other))

    failure = failure_of(site.fetch("b"), "diverged")
    assert fork(site, thread).follows is None

    assert site.find(f"threads/{thread}") == here
    assert failure.hint is not None
    assert "origin agrees with what is here, so a fork alone settles nothing" in failure.hint
    # What it says lets origin win, and who has the other side follows.
    fork(site, thread, at=there)
    assert f"`git update-ref -d refs/threads/{thread}` there" in failure.hint
    assert other.world.store.refs.delete(f"refs/threads/{thread}", seen=there or Oid(""))
    assert site.push(remote="b").failure() is None
    assert site.fetch("b").failure() is None


@pytest.mark.parametrize("ended", [False, True])
def test_thread_of_which_a_fork_is_here_follows_the_remote_without_another(
    sites: Sites, *, ended: bool
) -> None:
    site, other, thread = sites
    site.step(thread, ok=True)
    if ended:
        site.end(thread)
    kept = fork(site, thread)
    other.step(thread)
    other.push()
    ref = f"refs/{'archive' if ended else 'threads'}/{thread}"

    hint = failure_of(site.fetch(), "diverged").hint or ""

    assert f"thread {kept.thread} keeps yours already; `git update-ref -d {ref} {kept.at}`" in hint
    assert site.world.store.refs.delete(ref, seen=kept.at)
    assert_agree(site, other)


def test_thread_that_is_being_stepped_or_has_work_to_record_stays_where_it_is(sites: Sites) -> None:
    site, _other, thread = sites
    here, there = part(sites)
    store, caller = site.world.store, site.world.caller
    run = Path(store.local_path("run", thread, here))

    with lock_thread(store, thread, since_ms=0):
        assert adopt_remote_history(store, caller, thread, kept=here) is None
    run.mkdir(parents=True)
    (run / "exit").write_text("0\n")
    assert adopt_remote_history(store, caller, thread, kept=here) is None

    assert site.find(f"threads/{thread}") == here
    (run / "exit").unlink()
    assert adopt_remote_history(store, caller, thread, kept=here) == "origin"
    assert site.find(f"threads/{thread}") == there
