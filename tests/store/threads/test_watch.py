import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from fresh_store import fresh_store

from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.store import Store
from uwf_git.store.threads.watch import Line, RefWatch, Tips, hold_journal

A, B = ThreadId("01J00000000000000000000001"), ThreadId("01J00000000000000000000002")
ONE, TWO = Oid("1" * 40), Oid("2" * 40)


class Clock:
    """Time stands still until a test lets it pass."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watch(store: Store, clock: Clock) -> RefWatch:
    return RefWatch(store, clock)


def settle(watch: RefWatch, clock: Clock) -> None:
    """Look until nothing can have changed in a tick of the file system."""
    for _ in range(3):
        clock.now += 1.5
        watch.look()


def test_nothing_is_read_again_once_all_stood_still(
    store: Store, watch: RefWatch, clock: Clock
) -> None:
    store.refs.create(f"refs/threads/{A}", ONE)
    settle(watch, clock)

    assert watch.look() is None
    store.refs.advance(f"refs/threads/{A}", seen=ONE, to=TWO)
    assert watch.look() == Tips({A: TWO})


def test_change_in_the_tick_of_the_last_look_is_not_overlooked(
    store: Store, watch: RefWatch, clock: Clock
) -> None:
    store.refs.create(f"refs/threads/{A}", ONE)
    watch.look()
    # As on a file system that counts in seconds: the ref changes, and no time of its folder does.
    Path(store.path, "refs/threads", A).write_text(f"{TWO}\n")

    clock.now += 1.0
    assert watch.look() == Tips({A: TWO})


def test_packing_changes_nothing(
    store: Store, watch: RefWatch, clock: Clock, git: Callable[..., str]
) -> None:
    commit = git(
        "commit-tree", "-m", "x", git("mktree", cwd=Path(store.path)).strip(), cwd=Path(store.path)
    )
    there = Oid(commit.strip())
    store.refs.create(f"refs/threads/{A}", there)
    store.refs.create(f"refs/archive/{B}", there)
    settle(watch, clock)

    git("pack-refs", "--all", cwd=Path(store.path))

    assert watch.look() == Tips({A: there, B: there}, ended=frozenset({B}))
    store.refs.delete(f"refs/threads/{A}", seen=there)
    assert watch.look() == Tips({B: there}, ended=frozenset({B}))


THREAD = ThreadId("01J00000000000000000000001")
KNOWN = Line("known", THREAD, Oid("a" * 40))
MOVED = Line("moved", THREAD, Oid("b" * 40))


def test_line_that_a_killed_writer_left_half_written_is_written_over(store: Store) -> None:
    with hold_journal(store) as journal:
        journal.begin([KNOWN])
    with open(store.local_path("events"), "ab") as file:
        file.write(b"moved 01J0000")

    with hold_journal(store) as journal:
        lines, end = journal.read(0) or ([], 0)
        assert lines == [KNOWN]
        journal.append([MOVED], end)
        assert (journal.read(0) or ([], 0))[0] == [KNOWN, MOVED]


def test_second_waits_until_the_first_is_done(store: Store) -> None:
    names: list[str] = []

    def look() -> None:
        with hold_journal(store) as journal:
            names.append(journal.name)

    other = threading.Thread(target=look)
    with hold_journal(store) as journal:
        other.start()
        other.join(0.05)
        journal.begin([])
        assert names == []
    other.join()

    assert names == [journal.name]


def test_second_look_in_the_same_tick_reads_again() -> None:
    store = fresh_store()
    watch = RefWatch(store)
    store.refs.create(f"refs/threads/{A}", ONE)

    assert watch.look() == watch.look() == Tips({A: ONE})
