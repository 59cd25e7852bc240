import os
import threading
from pathlib import Path

import pytest

from uwf_git.model.names import ThreadId
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store, create_store
from uwf_git.store.threads.watch import Line, hold_journal

THREAD = ThreadId("01J00000000000000000000001")
KNOWN = Line("known", THREAD, Oid("a" * 40))
MOVED = Line("moved", THREAD, Oid("b" * 40))
ENTER = Line("enter", THREAD, Oid("b" * 40), '{"role": "é", "agent": null, "started_ms": 5}')


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return create_store(str(tmp_path / "store.git"))


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
