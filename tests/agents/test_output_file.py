import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from uwf_git.agents.output_file import OutputFile, create_output


@pytest.fixture
def output(tmp_path: Path) -> Iterator[OutputFile]:
    with closing(create_output(str(tmp_path / "out"))) as made:
        yield made


def test_only_what_is_new_is_read(output: OutputFile) -> None:
    os.write(output.descriptor, b"one ")
    first = [*output.read_new()]
    os.write(output.descriptor, b"two")

    assert (first, [*output.read_new()], [*output.read_new()]) == ([b"one "], [b"two"], [])


def test_long_output_comes_in_chunks_and_up_to_the_limit(output: OutputFile) -> None:
    os.write(output.descriptor, b"x" * 200_000)

    assert [len(chunk) for chunk in output.read_new(limit=100_000)] == [65536, 34464]
    assert output.offset == 100_000


def test_truncated_output_is_read_from_its_beginning(output: OutputFile, tmp_path: Path) -> None:
    os.write(output.descriptor, b"a long line")
    assert [*output.read_new()] == [b"a long line"]
    (tmp_path / "out").write_bytes(b"")
    os.write(output.descriptor, b"new")

    assert [*output.read_new()] == [b"new"]


def test_parts_are_read_without_moving(output: OutputFile) -> None:
    os.write(output.descriptor, b"beginning and end")

    assert (output.read(0, 9), output.read_tail(3), output.read_tail(99)) == (
        b"beginning",
        b"end",
        b"beginning and end",
    )
    assert output.offset == 0


def test_older_file_is_replaced_and_not_truncated(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with path.open("rb") as old, closing(create_output(str(path))) as new:
        os.write(new.descriptor, b"new")
        assert old.read() == b"old"
