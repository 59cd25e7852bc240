"""Who works on branches: `ps`, `wait` and `logs` of their parent."""

import base64
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from commands.flow_runs import script
from commands.inspect.test_branches import split_of
from commands.inspect.test_context import branch_of
from commands.turns import begin_turn
from commands.world import World
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from uwf_git.commands.agent_run.run_checks import Secrets
from uwf_git.commands.agent_run.runs import list_running, running_rows
from uwf_git.commands.inspect.logs import (
    GrowingFile,
    LastLine,
    LogLines,
    LogPiece,
    LogRequest,
    follow_logs,
)
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.local_files import lock_drive, lock_thread


@pytest.fixture
def thread(world: World) -> ThreadId:
    thread = split_of(world)
    world.step(thread, script())
    return thread


def test_ps_of_a_parent_has_its_branches(world: World, thread: ThreadId) -> None:
    branch, other = branch_of(world, thread, 0), world.begun()

    with lock_thread(world.store, branch, since_ms=0), lock_drive(world.store, other, since_ms=0):
        rows = {row["thread"]: row for row in running_rows(world.store, now_ms=1)}
        inside = [each.thread for each in list_running(world.store, thread)]

    assert set(rows) == {branch, other}
    assert rows[branch]["parentThread"] == thread
    assert "parentThread" not in rows[other]
    assert inside == [branch]


def test_logs_of_a_parent_are_followed_from_branch_to_branch(
    world: World, thread: ThreadId
) -> None:
    first, second = (branch_of(world, thread, number) for number in (0, 1))

    def log(branch: ThreadId, role: str, line: str) -> None:
        base = begin_turn(world, branch, role=role)
        with open(world.store.local_path("run", branch, base, "stderr"), "a") as file:
            file.write(f"{line}\n")

    with lock_thread(world.store, first, since_ms=0):
        log(first, "reviewer", "reviewing")
        pieces = (piece for piece in follow_logs(world.store, LogRequest(thread)) if piece.lines)
        told = [next(pieces)]
        log(second, "tester", "testing")
        told.append(next(pieces))

    assert [*told, *pieces] == [
        LogPiece("reviewer (nobody), branch 0 reviewer", ["reviewing"]),
        LogPiece("tester (nobody), branch 1 testing", ["testing"]),
    ]


# Files that another process writes: nothing is lost, read twice or waited for.


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def file(path: Path) -> Iterator[GrowingFile]:
    """Return a file that does not exist yet."""
    growing = GrowingFile(str(path))
    yield growing
    growing.close()


def new(file: GrowingFile) -> bytes:
    return b"".join(file.read_new())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=20)))
def test_all_that_is_added_is_given_once(tmp_path: Path, pieces: list[bytes]) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    file = GrowingFile(str(path))
    given = b""
    with path.open("ab", buffering=0) as log:
        for piece in pieces:
            log.write(piece)
            given += new(file)
    file.close()
    assert given == b"".join(pieces)


def test_file_that_was_truncated_is_read_from_its_beginning(path: Path, file: GrowingFile) -> None:
    path.write_bytes(b"a long line\n")
    assert new(file) == b"a long line\n"
    path.write_bytes(b"new\n")
    assert new(file) == b"new\n"


def test_file_that_was_replaced_is_read_to_its_end_first(path: Path, file: GrowingFile) -> None:
    path.write_bytes(b"one\n")
    assert new(file) == b"one\n"
    with path.open("ab") as old:
        old.write(b"two\n")
    path.unlink()
    path.write_bytes(b"three\n")
    assert new(file) == b"two\nthree\n"


def test_pipe_or_folder_does_not_block(path: Path) -> None:
    os.mkfifo(path)
    file = GrowingFile(str(path))
    assert new(file) == b""
    file.close()
    file.close()
    assert new(GrowingFile(str(path.parent / "none"))) == b""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.binary(max_size=5)), most=st.integers(0, 6), is_ended=st.booleans())
def test_last_lines_are_those_that_python_counts(
    tmp_path: Path, lines: list[bytes], most: int, *, is_ended: bool
) -> None:
    path = tmp_path / "log"
    content = b"\n".join(lines) + (b"\n" if is_ended and lines else b"")
    path.write_bytes(content)
    ended = content.split(b"\n")
    wanted = [*(line + b"\n" for line in ended[:-1]), *([ended[-1]] if ended[-1] else [])]
    file = GrowingFile(str(path))

    count = file.count_last_lines(most)
    before = file.read_before(10_000)
    last = new(file)
    file.close()

    assert last == b"".join(wanted[max(0, len(wanted) - most) :])
    assert count == min(most, len(wanted))
    assert before + last == content


def test_last_lines_of_a_large_file_are_found_across_pieces(path: Path) -> None:
    lines = [b"%d " % number + b"x" * 1000 + b"\n" for number in range(500)]
    path.write_bytes(b"".join(lines))
    file = GrowingFile(str(path))
    assert file.count_last_lines(130) == 130
    assert new(file) == b"".join(lines[-130:])
    file.close()


def test_last_lines_of_no_file_are_none(file: GrowingFile) -> None:
    assert file.count_last_lines(3) == 0
    assert file.read_before(3) == b""


def test_what_lies_behind_a_limit_is_not_read(path: Path) -> None:
    path.write_bytes(b"one\ntwo\nthree\n")
    os.truncate(path, 15 * 2**40)
    file = GrowingFile(str(path), most_bytes=12)

    assert new(file) == b"one\ntwo\nthre"
    assert new(file) == b""
    assert file.count_last_lines(2) == 2
    assert new(file) == b"two\nthre"
    file.close()


# Lines of logs: whole, and without keys wherever the pieces end.


SECRET = "correct-horse-battery-1"
SHAPED = "sk-0123456789abcdefABCDEF"
PEM = [
    "-----BEGIN RSA PRIVATE KEY-----",
    *(f"MIIEowIBAAKCAQEA{number:048}" for number in range(25)),
    "-----END RSA PRIVATE KEY-----",
]


def lines_of(*pieces: bytes, secrets: Sequence[str] = (SECRET,), before: bytes = b"") -> list[str]:
    lines = LogLines(Secrets(tuple(secrets)), before=before)
    return [line for piece in pieces for line in lines.add(piece)] + [*lines.end()]


def cut(content: bytes, places: list[int]) -> list[bytes]:
    """Cut *content* at *places*."""
    edges = [0, *sorted(place % (len(content) + 1) for place in places), len(content)]
    return [content[start:end] for start, end in itertools.pairwise(edges)]


def test_lines_end_as_systems_and_progress_bars_end_them() -> None:
    assert lines_of(b"one\ntwo\r\n10%\r20%\r\n\nlast") == ["one", "two", "10%", "20%", "", "last"]
    assert lines_of(b"") == []
    assert lines_of(b"x\r") == ["x"]


@given(st.lists(st.sampled_from(["a", "é", "\r", "\n", "\t", SECRET, SHAPED, "日"])), st.data())
def test_where_the_pieces_end_changes_nothing(parts: list[str], data: st.DataObject) -> None:
    content = " ".join(parts).encode()
    pieces = cut(content, data.draw(st.lists(st.integers(0, 500), max_size=6)))

    told = lines_of(*pieces)

    assert told == lines_of(content)
    assert not any(SECRET in line or SHAPED in line for line in told)


def test_secret_that_lines_cut_is_masked_where_they_arrive_together() -> None:
    secret = "correct-horse-battery-" * 4
    encoded = base64.encodebytes(secret.encode())

    told = lines_of(b"key:\n" + encoded + b"end\n", secrets=[secret])

    assert told[0] == "key:"
    assert "".join(told[1:]) == "[masked]end"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_private_key_is_masked_over_all_its_lines(end: str) -> None:
    content = end.join(["before", *PEM, "after"]).encode()
    for pieces in ([content], cut(content, [30, 60, 200, 900])):
        assert lines_of(*pieces) == ["before", "[masked]", "after"]


def test_private_key_that_began_before_what_is_shown_is_masked() -> None:
    whole = "\n".join([*PEM, "after"]) + "\n"
    place = whole.index(PEM[10])

    told = lines_of(whole[place:].encode(), before=whole[:place].encode())

    assert told == ["after"]


def test_key_without_an_end_does_not_swallow_the_rest_of_the_log() -> None:
    content = "\n".join([PEM[0], *["a line"] * 1000]).encode()

    told = lines_of(content)

    assert told[0] == "[masked]"
    assert 700 < len(told) < 1000


def test_short_line_after_the_end_of_a_key_is_there() -> None:
    assert lines_of("\n".join([*PEM, "", "x"]).encode()) == ["[masked]", "", "x"]
    assert lines_of(f"{PEM[0]}\nabc\n{PEM[-1]} and more".encode()) == ["[masked]", " and more"]


def test_line_without_an_end_is_cut_between_words() -> None:
    lines = LogLines(Secrets((SECRET,)))
    words = b"word " * 60_000 + SECRET[:7].encode()

    told = list(lines.add(words))
    told += [*lines.add(SECRET[7:].encode()), *lines.end()]

    assert len(told) == 2
    assert told[1] == "[masked]"


def last_of(*pieces: bytes, secrets: Sequence[str] = (SECRET,)) -> str:
    line = LastLine(Secrets(tuple(secrets)))
    for piece in pieces:
        line.add(piece)
    return line.find()


def test_last_line_is_the_last_that_says_anything() -> None:
    assert last_of() == ""
    assert last_of(b"one\n\x1b[31mt", b"wo\x1b[0m\r\n\r\n \x1b[0m\n") == "two"
    assert last_of(b"10%\r20%\r") == "20%"
    assert last_of("caf\u00e9".encode()[:-1], "\u00e9".encode()[1:]) == "caf\u00e9"
    assert last_of(b"it is \x1b[2J " + SHAPED.encode()) == "it is \x1b[2J [masked]"
    assert last_of(b"said " + SECRET.encode()) == "said [masked]"


@pytest.mark.parametrize("ends", [0, 5, len(PEM) - 1])
def test_last_line_is_none_of_a_private_key(ends: int) -> None:
    begun = "before\n" + "\n".join(PEM[: ends + 1])

    assert last_of(begun.encode()).removeprefix("before") in {"", "[masked]"}
    assert last_of(b"x" * 20_000 + b"\n" + begun.encode()) == "[masked]"


def test_last_line_of_a_flood_costs_little_and_shows_no_half_of_a_key() -> None:
    line = LastLine(Secrets((SECRET,)))
    for _count in range(1000):
        line.add(b"x" * 65_536)
    assert line.find() == ""
    line.add(b" and then")
    assert line.find() == "and then"
    line.add(b"\n" + SECRET.encode() + b" " + b"y" * 32_000 + b" " + SECRET.encode())
    assert line.find().endswith("[masked]")
    line.add(SECRET.encode() * 2000)
    assert SECRET[4:] not in line.find()
