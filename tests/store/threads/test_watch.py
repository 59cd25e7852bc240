import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from fresh_store import fresh_store

from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store, create_store
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
def store(tmp_path: Path) -> Store:
    return create_store(str(tmp_path / "store.git"))


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


def test_heads_are_where_their_refs_say(store: Store, watch: RefWatch) -> None:
    store.refs.create(f"refs/threads/{A}", ONE)
    store.refs.create(f"refs/archive/{B}", TWO)
    store.refs.create("refs/threads/other", TWO)

    assert watch.look() == Tips({A: ONE, B: TWO}, ended=frozenset({B}))


def test_archived_thread_is_archived_whatever_its_active_ref_says(
    store: Store, watch: RefWatch
) -> None:
    store.refs.create(f"refs/threads/{A}", ONE)
    store.refs.create(f"refs/archive/{A}", TWO)

    assert watch.look() == Tips({A: TWO}, ended=frozenset({A}))


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


def test_ref_without_an_object_id_is_named_and_has_no_head(store: Store, watch: RefWatch) -> None:
    store.refs.create(f"refs/threads/{A}", ONE)
    Path(store.path, "refs/threads", A).write_text("garbage\n")

    assert watch.look() == Tips({}, (f"refs/threads/{A}",))


def test_second_look_in_the_same_tick_reads_again() -> None:
    store = fresh_store()
    watch = RefWatch(store)
    store.refs.create(f"refs/threads/{A}", ONE)

    assert watch.look() == watch.look() == Tips({A: ONE})


THREAD = ThreadId("01J00000000000000000000001")
KNOWN = Line("known", THREAD, Oid("a" * 40))
MOVED = Line("moved", THREAD, Oid("b" * 40))
ENTER = Line("enter", THREAD, Oid("b" * 40), '{"role": "é", "agent": null, "started_ms": 5}')


def test_lines_read_back_from_where_they_were_read_to(store: Store) -> None:
    with hold_journal(store) as journal:
        journal.begin([KNOWN])
        lines, end = journal.read(0) or ([], 0)
        journal.append([MOVED, ENTER], end)
        rest = journal.read(end)

    assert lines == [KNOWN]
    assert rest is not None
    assert rest[0] == [MOVED, ENTER]
    assert rest[0][1].told == {"role": "é", "agent": None, "started_ms": 5}


def test_journal_that_is_begun_anew_has_another_name(store: Store) -> None:
    with hold_journal(store) as journal:
        assert journal.name == ""
        journal.begin([KNOWN])
        first = journal.name
    with hold_journal(store) as journal:
        assert journal.name == first
        journal.begin([])
        assert journal.name not in {"", first}
        assert journal.read(0) == ([], len(journal.name))


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


@pytest.mark.parametrize(
    "garbage", [b"\0" * 20 + b"\n", b"moved x\n", b"xmoved " + b"0" * 70 + b"\n"]
)
def test_garbage_is_not_a_journal(store: Store, garbage: bytes) -> None:
    with hold_journal(store) as journal:
        journal.begin([KNOWN])
    with open(store.local_path("events"), "ab") as file:
        file.write(garbage)

    with hold_journal(store) as journal:
        assert journal.read(0) is None


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


def test_only_one_holds_it(store: Store) -> None:
    with hold_journal(store):
        pid = os.fork()
        if pid == 0:
            import fcntl  # noqa: PLC0415 (the child alone needs it)

            with open(store.local_path("events"), "ab") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
