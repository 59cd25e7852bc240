import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands.flows import lists, plays, split_checks
from commands.forging import forge, says
from commands.sharing import Shared, Site, empty, failure_of, refs_of, share
from commands.world import World, replied
from refusing import refuses

from uwf_git.commands.remote import reconcile as arrivals_module
from uwf_git.commands.remote.fetch import clone_store
from uwf_git.commands.remote.reconcile import (
    MOST_FAILED,
    Arrival,
    first_finding,
    judge_arrivals,
    judge_together,
)
from uwf_git.commands.step.step_thread import list_leaves
from uwf_git.commands.verify.history import Finding
from uwf_git.commands.verify.thread import check_thread
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.git.config import set_config
from uwf_git.store.remotes.remotes import add_remote, choose_remote
from uwf_git.store.remotes.transport import RemoteFailed
from uwf_git.store.store import Store, create_store, find_store, open_store


@pytest.fixture
def shared(world: World, hub: Path) -> Shared:
    site, thread = share(world, str(hub))
    site.push()
    return site, thread


def test_a_clone_is_a_store_that_knows_where_it_came_from(
    shared: Shared, world: World, hub: Path
) -> None:
    cloned = clone_store(world.caller, "../hub.git", "deep/copy.git")
    assert cloned.path == f"{world.place}/deep/copy.git"
    assert refs_of(Path(cloned.path)) == shared[0].refs()
    store = find_store(cloned.path, "/", os.environ, create=False)
    assert choose_remote(store.config, None).url == str(hub)
    assert store.config.get_flag("uwf.store", default=False)
    assert os.listdir(world.place / "deep") == ["copy.git"]


def test_a_clone_has_the_name_at_the_end_of_the_url(
    shared: Shared, world: World, hub: Path
) -> None:
    assert clone_store(world.caller, f"file://{hub}", None).path == f"{world.place}/hub.git"
    with refuses("place-taken", match=str(world.place)):
        clone_store(world.caller, str(hub), None)
    with refuses("bad-remote-url", match="no name"):
        clone_store(world.caller, "/", None)


def test_a_clone_in_an_empty_folder_keeps_it_private_and_where_it_is(
    shared: Shared, world: World, hub: Path
) -> None:
    folder = world.place / "private"
    folder.mkdir(mode=0o700)
    with refuses("place-taken", match="that you are in"):
        clone_store(world.caller._replace(cwd=str(folder)), str(hub), ".")
    (world.place / "link").symlink_to("private")
    assert clone_store(world.caller, str(hub), "link").path == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_clone_that_fails_leaves_nothing_behind(world: World, tmp_path: Path) -> None:
    for path in (None, "deep/copy.git"):
        with pytest.raises(RemoteFailed):
            clone_store(world.caller, f"{tmp_path}/nothing.git", path)
    assert [each for each in os.listdir(world.place) if each != "deep"] == []
    assert os.listdir(world.place / "deep") == []


@pytest.fixture
def arrivals(world: World) -> list[Arrival]:
    """Return threads with a step each, of which one is known at its start."""
    world.put()
    found = []
    for number in range(4):
        thread = world.start()
        start = world.tip(thread)
        world.step(thread)
        found.append(Arrival(thread, start if number else None, world.tip(thread), archived=False))
    return found


def test_one_that_is_wrong_is_found_among_the_others(
    world: World, arrivals: list[Arrival], thread_ids: Callable[[], ThreadId]
) -> None:
    other = Arrival(thread_ids(), None, arrivals[0].tip, archived=False)
    ended = arrivals[1]._replace(archived=True)
    for wrong in (other, ended, arrivals[2]._replace(tip=Oid("0" * 40))):
        judged = judge_arrivals(world.store, [*arrivals, wrong])
        assert judged.passed == set(arrivals)
        assert list(judged.refused) == [wrong]
        alone = check_thread(
            world.store, wrong.thread, wrong.tip, archived=wrong.archived, known=wrong.known
        )
        assert list(alone)


BAD = Finding("bad", "mend it")


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Check in this process, and count: the number of items of each check."""
    counted: list[int] = []

    def first(_store: Store, check: Callable[[], Iterator[Finding]]) -> Finding | None:
        counted.append(1)
        return next(check(), None)

    monkeypatch.setattr(arrivals_module, "first_finding", first)
    return counted


def test_bad_items_without_end_are_not_looked_at_without_end(
    store: Store, checked: list[int]
) -> None:
    refused = judge_together(store, range(50_000), lambda _items: iter([BAD]))

    assert len(refused) == 50_000
    assert len(checked) == MOST_FAILED
    assert MOST_FAILED // 3 < list(refused.values()).count(BAD) < MOST_FAILED


# A fetch of named threads: they, their branches and the threads around them; nothing else.

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
    assert failure_of(b.fetch("origin", STRANGER), "not-at-remote").exit_status == 1


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return create_store(str(tmp_path / "store.git"))


def test_damage_is_a_finding(store: Store) -> None:
    def check() -> Iterator[Finding]:
        yield from ()
        raise StoreDamaged("a commit is missing", hint="look")

    assert first_finding(store, check) == Finding("a commit is missing", "look")


def reserve(mebibytes: int) -> Callable[[], Iterator[Finding]]:
    def check() -> Iterator[Finding]:
        assert bytes(mebibytes * 1024**2)
        yield from ()

    return check


@pytest.mark.parametrize(
    ("largest_blob", "enough", "too_much"), [(None, 200, 500), ("64m", 900, 1500)]
)
def test_check_may_take_memory_for_the_largest_blob(
    store: Store, largest_blob: str | None, enough: int, too_much: int
) -> None:
    if largest_blob is not None:
        set_config(f"{store.path}/config", "uwf.maxBlobSize", largest_blob)
    store = open_store(store.path)

    assert first_finding(store, reserve(enough)) is None

    found = first_finding(store, reserve(too_much))
    assert found is not None
    assert "the check of what came took too much memory" in found.message
    assert "uwf.maxBlobSize" in found.hint
