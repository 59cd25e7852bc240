"""Plain git carries threads as well, with the settings that `uwf remote add` writes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commands.sharing import Shared, Site, Sites, another, empty, make_hub, refs_of
from commands.world import Git, World, read_thread
from refusing import refuses

from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.remote.push_plan import repair_remotes
from uwf_git.commands.step.ending import fast_forward_from_tracking
from uwf_git.store.store import open_store


def there(world: World, path: Path) -> Site:
    """Return a site on a store that git made."""
    store = open_store(str(path), environ=world.caller.environ)
    return Site(World(world.place, store, world.caller, world.new_id))


def test_git_push_and_git_fetch_need_no_refspecs(
    shared: Shared, world: World, hub: Path, git: Git
) -> None:
    site, thread = shared
    git("push", "--quiet", "origin", cwd=site.path)
    assert refs_of(hub) == site.refs()
    other = another(world, str(hub))
    other.step(thread)
    git("push", "--quiet", "origin", cwd=other.path)
    git("fetch", "--quiet", "origin", cwd=site.path)
    assert site.find(f"uwf/remotes/origin/threads/{thread}") == other.find(f"threads/{thread}")
    assert site.find(f"threads/{thread}") != other.find(f"threads/{thread}")
    assert [each.event for each in site.fetch().reconciled] == ["moved"]
    assert site.refs() == other.refs() == refs_of(hub)


@pytest.mark.parametrize("part", ["--depth=1", "--filter=blob:none"])
def test_what_git_fetched_in_part_is_fetched_whole(
    part: str, sites: Sites, hub: Path, git: Git
) -> None:
    _site, other, thread = sites
    git("config", "uploadpack.allowFilter", "true", cwd=hub)
    reader = empty(other.world, f"file://{hub}", name="c")
    git("fetch", "--quiet", part, "origin", cwd=reader.path)
    other.step(thread)
    other.push()
    assert reader.fetch().failure() is None
    assert reader.refs() == other.refs()
    assert reader.fetch().unchanged == len(other.refs())


def test_what_git_fetched_is_taken_over_before_a_step(sites: Sites, git: Git) -> None:
    site, other, thread = sites
    other.step(thread)
    other.push()
    git("fetch", "--quiet", "origin", cwd=site.path)
    store = open_store(str(site.path))
    assert fast_forward_from_tracking(store, thread)
    assert site.find(f"threads/{thread}") == other.find(f"threads/{thread}")
    assert not fast_forward_from_tracking(store, thread)


def test_a_thread_that_git_saw_ended_elsewhere_is_not_stepped(sites: Sites, git: Git) -> None:
    site, other, thread = sites
    other.end(thread)
    other.push()
    site.step(thread)
    git("fetch", "--quiet", "origin", cwd=site.path)
    with refuses("ended-elsewhere", match=f"fork {thread} --at|has ended at origin") as ended:
        fast_forward_from_tracking(open_store(str(site.path)), thread)
    assert str(site.find(f"threads/{thread}")) in (ended.value.hint or "")


def test_pruning_deletes_no_thread_that_was_never_pushed(shared: Shared, git: Git) -> None:
    site, _thread = shared
    before = site.refs()
    git("config", "fetch.prune", "true", cwd=site.path)
    git("fetch", "--quiet", "--prune", "origin", cwd=site.path)
    assert site.fetch().failure() is None
    assert site.refs() == before


def test_both_refs_that_a_plain_push_leaves_are_swept_by_the_next_push(
    shared: Shared, world: World, hub: Path, git: Git
) -> None:
    site, thread = shared
    site.push()
    other = another(world, str(hub), name="reader")
    site.end(thread)
    git("push", "--quiet", "origin", cwd=site.path)
    assert set(refs_of(hub, "threads", "archive")) == {f"threads/{thread}", f"archive/{thread}"}

    assert [each.event for each in other.fetch().reconciled] == ["archived"]
    assert [change.status for change in other.push().pushed] == ["deleted"]
    assert set(refs_of(hub, "threads", "archive")) == {f"archive/{thread}"}
    assert other.refs("threads", "archive") == refs_of(hub, "threads", "archive")


def test_both_refs_that_a_same_name_refspec_leaves_here_are_swept_by_the_next_fetch(
    sites: Sites, hub: Path, git: Git
) -> None:
    site, other, thread = sites
    other.end(thread)
    other.push()
    git("fetch", "--quiet", hub, "refs/archive/*:refs/archive/*", cwd=site.path)
    assert len(site.refs("threads", "archive")) == 2
    assert site.fetch().failure() is None
    assert set(site.refs("threads", "archive")) == {f"archive/{thread}"}


def test_one_thread_pushed_into_an_empty_repository_is_enough(
    shared: Shared, world: World, tmp_path: Path, git: Git
) -> None:
    site, thread = shared
    pushes: list[Callable[[], object]] = [
        lambda: site.push(thread[:20]),
        lambda: git("push", "--quiet", "origin", f"refs/threads/{thread}", cwd=site.path),
    ]
    for number, push in enumerate(pushes):
        path = make_hub(tmp_path / str(number))
        git("remote", "set-url", "origin", path, cwd=site.path)
        push()
        assert list(refs_of(path)) == [f"threads/{thread}"]
        receiver = there(world, path)
        assert read_thread(receiver.world.store, thread) == read_thread(world.store, thread)
        assert show_thread(receiver.world.store, thread)["depth"] == 1
        with refuses("agent-not-trusted"):
            receiver.world.step(thread)
        with refuses("workdir-unknown"):
            receiver.world.step(thread, command="mine")
        receiver.end(thread)
        assert git("fsck", "--strict", cwd=path) == ""


@pytest.mark.parametrize("words", [["--mirror"], ["--bare", "-c"]])
def test_what_git_clones_goes_on_when_it_is_repaired(
    words: list[str], shared: Shared, world: World, hub: Path, git: Git
) -> None:
    site, thread = shared
    site.push()
    path = world.place.parent / "cloned.git"
    if "-c" in words:
        words = [*words, "remote.origin.fetch=+refs/threads/*:refs/threads/*"]
    git("clone", "--quiet", *words, hub, path, cwd=world.place)
    clone = there(world, path)
    records: list[Callable[[], object]] = [lambda: clone.step(thread), clone.push, clone.fetch]
    for record in records:
        with refuses("mirror-store"):
            record()
    assert read_thread(clone.world.store, thread) == read_thread(world.store, thread)

    assert repair_remotes(clone.world.store, clone.world.caller, None) == ["origin"]
    clone.step(thread)
    stepped = clone.refs()
    site.world.begun()
    site.push()
    git("fetch", "--quiet", "--prune", "origin", cwd=path)
    assert clone.refs() == stepped
    git("push", "--quiet", "origin", cwd=path)
    assert len(refs_of(hub, "threads")) == 2
    assert clone.push().pushed == []
    assert [each.event for each in site.fetch().reconciled] == ["moved"]
    assert clone.fetch().failure() is None
    assert git("fsck", "--strict", cwd=path) == ""
