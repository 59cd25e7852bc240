import threading
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from fresh_store import fresh_store
from hypothesis import given
from hypothesis import strategies as st
from model.telling import tell_cases

from uwf_git.model.event_folds import Words
from uwf_git.model.names import NodeHash, Oid, ThreadId
from uwf_git.model.thread import (
    Child,
    Event,
    NotAPresent,
    Split,
    Status,
    ThreadState,
    TransitionRecord,
)
from uwf_git.store.objects.commit import encode_json
from uwf_git.store.store import Store
from uwf_git.store.threads.history import build_thread_message, parse_now, parse_thread_message
from uwf_git.store.threads.watch import Line, RefWatch, Tips, hold_journal

RECORDS = Path(__file__).parent / "made_up" / "records.json"


RECORD = TransitionRecord(
    thread=ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4T"),
    event="attempt",
    status="ready",
    node=NodeHash("8FWKR3TN5V1QA"),
    depth=2,
    workflow=NodeHash("4KNM2PXR3B1QW"),
    workflow_name="solve-issue",
    role="developer",
    agent="uwf-cursor --model 'a b'",
    attempt=3,
    retries_left=True,
    cause=NodeHash("8FWKR3TN5V1QA"),
)
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
records = st.builds(
    RECORD._replace,
    event=st.sampled_from(get_args(Event)),
    status=st.sampled_from(get_args(Status)),
    depth=st.integers(0, 10**15 - 1),
    workflow_name=words,
    role=st.none() | words,
    agent=st.none() | words,
    attempt=st.none() | st.integers(1, 10**9),
    at=st.none() | words,
    retries_left=st.sampled_from([None, True, False]),
    files=st.sampled_from([None, f"{'a' * 40}..{'0' * 40}"]),
)


@given(record=records, said=st.text(), body=st.text())
def test_a_record_reads_back_whatever_the_words(
    record: TransitionRecord, said: str, body: str
) -> None:
    assert parse_thread_message(build_thread_message(record, Words(said, body))) == record


def test_a_message_is_as_it_was_written_down(golden: Callable[[str, bytes], None]) -> None:
    body = "Traceback:\n  no such file\n\nUwf-Status: completed\n"
    message = build_thread_message(RECORD, Words("attempt 3 failed: exit status 1", body))
    golden("store/message.txt", message)


def trailers(**changed: str | None) -> bytes:
    lines = {
        "Uwf-Thread": RECORD.thread,
        "Uwf-Event": "step",
        "Uwf-Status": "ready",
        "Uwf-Node": RECORD.node,
        "Uwf-Depth": "2",
        "Uwf-Workflow": RECORD.workflow,
        "Uwf-Workflow-Name": "solve-issue",
        "Uwf-Format": "2",
        **{f"Uwf-{name.replace('_', '-')}": value for name, value in changed.items()},
    }
    kept = [f"{name}: {value}\n" for name, value in lines.items() if value is not None]
    return f"subject\n\n{''.join(kept)}".encode()


def test_what_each_turn_says_of_tries_and_files_is_read() -> None:
    record = parse_thread_message(trailers(Retries_Left="no", Files=f"{'a' * 40}..{'b' * 40}"))
    assert (record.retries_left, record.files) == (False, f"{'a' * 40}..{'b' * 40}")


def test_invalid_record_is_refused(golden: Callable[[str, str], None]) -> None:
    answers = {"parse_thread_message": lambda changed: parse_thread_message(trailers(**changed))}
    golden("store/records.txt", tell_cases(RECORDS, answers))


STATE = ThreadState(
    NodeHash("8FWKR3TN5V1QA"), {"writer": NodeHash("7BQST3VW9F2MA")}, 5, state={"n": 1}
)


def test_what_was_written_is_read_back() -> None:
    now = parse_now(encode_json(STATE.as_document()))

    assert now.present == STATE
    assert now.document == STATE.as_document()


@pytest.mark.parametrize(
    "content", [b"", b"null", b"{}", b"[" * 9999, b"\xff", b'{"a": "\\ud800"}', b'{"a": 1e999}']
)
def test_anything_else_is_refused(content: bytes) -> None:
    with pytest.raises(NotAPresent):
        parse_now(content)


def test_that_of_many_branches_is_parsed_once_and_nobody_can_change_it() -> None:
    branches = tuple(
        Child(ThreadId(f"01J{number:023}"), NodeHash("8FWKR3TN5V1QA")) for number in range(200)
    )
    state = STATE._replace(split=Split("0", branches), state={"list": [1]})
    content = encode_json(state.as_document())

    now = parse_now(content)

    assert now.present == state
    assert parse_now(bytes(bytearray(content))) is now
    with pytest.raises(TypeError):
        now.present.state["list"].append(2)


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
