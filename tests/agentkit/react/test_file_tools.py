"""The file tools: their effects and their replies."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agentkit.react.arguments import ToolArguments
from uwf_git.agentkit.react.file_tools import (
    LONGEST_READ,
    list_files,
    patch_file,
    read_file,
    write_file,
)
from uwf_git.agentkit.react.work_folder import ToolFailed, WorkFolder, open_work_folder

FileTool = Callable[[WorkFolder, ToolArguments], str]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path


def run(tool: FileTool, place: Path, **values: Any) -> str:
    return tool(open_work_folder(str(place)), ToolArguments(tool.__name__, values))


def test_a_file_is_read_as_it_stands(place: Path) -> None:
    (place / "a").write_bytes(b"one\r\ntw\xc3\xb6\n\xff")
    assert run(read_file, place, path="a") == "one\r\ntwö\n\ufffd"


def test_an_empty_file_is_said_to_be_empty(place: Path) -> None:
    (place / "a").write_text("")
    assert run(read_file, place, path="a") == "(empty)"


def test_lines_can_be_chosen_and_the_rest_is_reported(place: Path) -> None:
    (place / "a").write_text("".join(f"line {n}\n" for n in range(1, 11)))
    told = run(read_file, place, path="a", first_line=3, lines=2)
    assert told == "line 3\nline 4\n[… the file goes on; first_line=5 gives more …]"
    assert run(read_file, place, path="a", first_line=10) == "line 10\n"
    assert run(read_file, place, path="a", first_line=12) == (
        "(there is no line 12; the file has 10)"
    )


def test_a_long_file_comes_in_parts_that_can_be_put_together(place: Path) -> None:
    lines = [f"{n} {'x' * 90}\n" for n in range(2_000)]
    (place / "a").write_text("".join(lines))
    read: list[str] = []
    while len(read) < len(lines):
        part = run(read_file, place, path="a", first_line=len(read) + 1)
        assert len(part) <= LONGEST_READ + 100
        read += [line for line in part.splitlines(keepends=True) if not line.startswith("[…")]
    assert read == lines


def test_one_endless_line_is_cut(place: Path) -> None:
    (place / "a").write_text("x" * 200_000)
    told = run(read_file, place, path="a")
    assert len(told) < LONGEST_READ + 100
    assert told.endswith("[… line 1 is longer; first_line=2 skips the rest …]")


def test_a_binary_file_is_not_shown(place: Path) -> None:
    (place / "a").write_bytes(b"\x7fELF\0\0")
    with pytest.raises(ToolFailed, match="a is no text, but 6 bytes"):
        run(read_file, place, path="a")


def test_a_file_is_written_and_replaced(place: Path) -> None:
    assert run(write_file, place, path="d/a", content="one\ntwo") == (
        "wrote the new file d/a, 2 lines"
    )
    assert run(write_file, place, path="d/a", content="") == "replaced d/a, 0 lines"
    assert (place / "d" / "a").read_bytes() == b""


def test_half_a_surrogate_is_not_written(place: Path) -> None:
    with pytest.raises(ToolFailed, match="surrogate"):
        run(write_file, place, path="a", content="\ud800")
    assert not (place / "a").exists()


def test_a_passage_is_replaced_and_nothing_else(place: Path) -> None:
    (place / "a").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    assert run(patch_file, place, path="a", old="two\r\n", new="2\r\n") == "changed a at line 2"
    assert (place / "a").read_bytes() == b"one\r\n2\r\nthree\r\n"


@pytest.mark.parametrize(
    ("old", "told"),
    [("x", "does not stand in a"), ("o", "stands 2 times in a"), ("", "`old` is empty")],
)
def test_a_passage_not_found_exactly_once_changes_nothing(place: Path, old: str, told: str) -> None:
    (place / "a").write_text("one two\n")
    with pytest.raises(ToolFailed, match=told):
        run(patch_file, place, path="a", old=old, new="new")
    assert (place / "a").read_text() == "one two\n"


def test_what_is_no_text_is_not_patched(place: Path) -> None:
    (place / "a").write_bytes(b"one \xff")
    with pytest.raises(ToolFailed, match="not UTF-8"):
        run(patch_file, place, path="a", old="one", new="two")


@given(st.text("ab\n", max_size=20), st.text("ab\n", min_size=1, max_size=3), st.text("ab\n"))
def test_a_patch_is_the_replacement_of_what_stands_once(source: str, old: str, new: str) -> None:
    place = Path.home()
    (place / "a").write_bytes(source.encode())
    if source.count(old) == 1:
        run(patch_file, place, path="a", old=old, new=new)
        assert (place / "a").read_bytes() == source.replace(old, new).encode()
    else:
        with pytest.raises(ToolFailed):
            run(patch_file, place, path="a", old=old, new=new)


def test_files_are_listed(place: Path) -> None:
    assert run(list_files, place) == "(empty)"
    (place / "d").mkdir()
    (place / "d" / "a").write_text("")
    assert run(list_files, place) == "d/\nd/a"
    assert run(list_files, place, path="d", depth=1) == "a"


def test_a_very_long_list_is_cut(place: Path) -> None:
    for number in range(1_001):
        (place / f"{number:04}").write_text("")
    told = run(list_files, place)
    assert told.endswith("0999\n[… only the first 1,000; list a folder of them …]")
