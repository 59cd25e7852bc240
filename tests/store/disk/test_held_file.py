import json
import os
from pathlib import Path

import pytest
from store.lock_garbage import GARBAGE

from uwf_git.store.locks import (
    Holder,
    hold_file,
    hold_lock,
    read_content,
    read_holder,
    this_process,
)
from uwf_git.surroundings import read_process_start


class FileBusy(Exception):
    """Another process holds the file."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "new" / "lock")


def busy(holder: Holder) -> Exception:
    return FileBusy(json.dumps(holder))


def test_held_file_names_its_holder_and_is_empty_afterwards(path: str) -> None:
    with hold_file(path, {"pid": 7, "since": 5}, patience_s=0, busy=busy) as held:
        assert read_content(path) == {"pid": 7, "since": 5}
        held.write({"pid": 7})
        assert read_content(path) == {"pid": 7}
    assert Path(path).read_bytes() == b""


def test_content_of_a_killed_holder_is_replaced(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    for content in ({}, {"pid": 8}):
        Path(path).write_text(json.dumps({"pid": 7, "role": "x" * 100}))
        with hold_file(path, content, patience_s=0, busy=busy):
            assert read_content(path) == content


def test_second_holder_is_refused_at_once_with_the_name_of_the_first(path: str) -> None:
    holder = this_process(since_ms=5)
    with (
        hold_file(path, holder, patience_s=60, busy=busy),
        pytest.raises(FileBusy) as caught,
        hold_file(path, holder, patience_s=60, busy=busy),
    ):
        pytest.fail("two held it")
    assert json.loads(str(caught.value)) == holder
    assert holder["start"] == read_process_start(os.getpid())


def test_lock_without_a_living_holder_is_waited_for(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = hold_lock(path, wait=True)
    looked.__enter__()
    Path(path).write_text(json.dumps(this_process(5) | {"start": 1}))
    monkeypatch.setattr("time.sleep", lambda _seconds: looked.__exit__(None, None, None))
    with hold_file(path, {"pid": 7}, patience_s=60, busy=busy):
        assert read_content(path) == {"pid": 7}


def test_dead_holder_is_not_named_when_patience_ends(path: str) -> None:
    with hold_lock(path, wait=True):
        Path(path).write_text(json.dumps(this_process(5) | {"start": 1}))
        with pytest.raises(FileBusy, match=r"^\{\}$"), hold_file(path, {}, patience_s=0, busy=busy):
            pytest.fail("it is held")


def test_values_are_cut_and_stripped_of_control_characters(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    Path(path).write_text(json.dumps({"role": "a\x1b\n" + "b" * 200, "pid": 7, "other": 1}))
    assert read_holder(path) == {"role": "a" + "b" * 99, "pid": 7}


@pytest.mark.parametrize("content", GARBAGE, ids=lambda content: repr(content[:12]))
def test_lock_file_of_garbage_has_no_holder(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lock"
    path.write_bytes(content)
    assert read_holder(str(path)) == {}


@pytest.mark.parametrize("name", ["missing", "missing/too", "."])
def test_unreadable_lock_file_has_no_holder(tmp_path: Path, name: str) -> None:
    assert read_holder(str(tmp_path / name)) == {}
