"""Files that another process writes: nothing is lost, read twice or waited for."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from uwf_git.commands.inspect.logs import GrowingFile


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


def test_large_file_comes_in_pieces(path: Path, file: GrowingFile) -> None:
    path.write_bytes(b"x" * 300_000)
    pieces = list(file.read_new())
    assert sum(map(len, pieces)) == 300_000
    assert max(map(len, pieces)) <= 64 * 1024


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
