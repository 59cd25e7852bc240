import os
from pathlib import Path

import pytest
from commands.turns import begin_turn
from commands.world import World
from store.loose import lose

from uwf_git.commands.control.steer import patch_thread
from uwf_git.commands.events.journal import JournalReader
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId


class Reader:
    """A reader of the journal, and the damage that was reported to it."""

    def __init__(self, world: World) -> None:
        self.troubles: list[StoreDamaged] = []
        self.journal = JournalReader(world.store, lambda _, damage: self.troubles.append(damage))

    def take(self) -> list[tuple[str, ThreadId]]:
        return [line[:2] for line in self.journal.take()]


@pytest.fixture
def thread(world: World) -> ThreadId:
    return world.begun()


@pytest.fixture
def reader(world: World) -> Reader:
    return Reader(world)


def test_each_transition_becomes_a_line_for_all_readers(
    world: World, thread: ThreadId, reader: Reader
) -> None:
    reader.take()
    other = Reader(world)
    other.take()
    world.step(thread)
    world.step(thread)

    lines = reader.journal.take()

    assert [line.word for line in lines] == ["moved", "moved"]
    assert other.journal.take() == lines
    late = Reader(world).journal.take()
    assert late[1:] == lines
    assert reader.take() == []


def test_turn_is_a_line_when_it_begins_and_only_once(
    world: World, thread: ThreadId, reader: Reader
) -> None:
    reader.take()
    base = begin_turn(world, thread)

    (line,) = reader.journal.take()

    assert (line.word, line.commit) == ("enter", base)
    assert line.told["role"] == "writer"
    assert reader.take() == []
    assert Reader(world).take() == [("known", thread), ("enter", thread)]


def test_turn_begins_after_the_transition_that_it_follows(
    world: World, thread: ThreadId, reader: Reader
) -> None:
    reader.take()
    world.step(thread)
    begin_turn(world, thread, role="checker")
    patch_thread(world.store, world.caller, thread, {"a": 1})

    assert [word for word, _ in reader.take()] == ["moved", "enter", "moved"]


def test_leftover_run_directory_of_a_recorded_turn_is_no_line(
    world: World, thread: ThreadId, reader: Reader
) -> None:
    reader.take()
    base = world.snapshot(thread).commit.oid
    world.step(thread)
    reader.take()
    Path(world.store.local_path("run", thread, base)).mkdir(parents=True)

    assert reader.take() == []


def test_damaged_thread_is_reported_once_and_the_others_are_read(
    world: World, thread: ThreadId, reader: Reader
) -> None:
    broken, spoiled = world.start(), world.start()
    reader.take()
    for each in (thread, broken):
        world.step(each)
    tip = world.snapshot(broken).commit.oid
    lose(world.store, tip)
    Path(world.store.path, "refs/threads", spoiled).write_text("garbage\n")

    assert reader.take() == [("moved", thread)]
    assert reader.take() == []
    assert sorted(error.code for error in reader.troubles) == ["bad-ref", "damaged-commit"]


def test_journal_that_is_deleted_is_begun_anew_and_nothing_is_missed(
    world: World, thread: ThreadId, reader: Reader
) -> None:
    reader.take()
    other = Reader(world)
    other.take()
    world.step(thread)
    reader.take()
    os.unlink(world.store.local_path("events"))
    world.step(thread)

    assert reader.take() == [("moved", thread)]
    # It has seen neither of the two steps.
    assert other.take() == [("moved", thread)] * 2


def test_journal_that_holds_something_else_is_begun_anew(
    world: World, thread: ThreadId, reader: Reader
) -> None:
    path = Path(world.store.local_path("events"))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"something else\n" * 100)

    assert reader.take() == [("known", thread)]
    path.write_bytes(path.read_bytes() + b"garbage\n")
    world.step(thread)
    assert reader.take() == [("moved", thread)]
    assert Reader(world).take() == [("known", thread), ("moved", thread)]


def test_reader_without_write_permission_keeps_its_own_journal(
    world: World, thread: ThreadId, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Root may write everywhere, so the refusal is simulated.
    real = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path).endswith("/uwf/events"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)

    assert reader.take() == [("known", thread)]
    world.step(thread)
    assert reader.take() == [("moved", thread)]
    assert reader.take() == []
