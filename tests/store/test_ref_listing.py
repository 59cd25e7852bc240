from collections.abc import Callable
from pathlib import Path

import pytest

from uwf_git.store.ref_listing import list_bad_files, list_refs
from uwf_git.store.refs import Oid
from uwf_git.store.store import Store, create_store, memory_store

Git = Callable[..., str]
A, B, C = (Oid(digit * 40) for digit in "abc")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return create_store(str(tmp_path / "store.git"))


def test_loose_refs_come_before_packed_ones(store: Store) -> None:
    Path(store.path, "packed-refs").write_text(
        "# pack-refs with: peeled fully-peeled sorted \n"
        f"{A} refs/threads/both\n{B} refs/threads/packed\n^{C}\n{C} refs/threadsx/other\n"
    )
    assert store.refs.create("refs/threads/loose", C)
    assert store.refs.advance("refs/threads/both", seen=A, to=B)
    assert list_refs(store, "refs/threads/") == {"both": B, "loose": C, "packed": B}


def test_what_is_no_ref_right_below_is_left_out(store: Store) -> None:
    folder = Path(store.path, "refs", "threads")
    folder.mkdir()
    (folder / "broken").write_text("not an id\n")
    assert store.refs.create("refs/threads/deeper/x", A)
    assert store.refs.create("refs/threads/x", B)
    (folder / "x.lock").write_text(f"{A}\n")
    assert list_refs(store, "refs/threads/") == {"x": B}
    assert list_refs(store, "refs/none/") == {}


def test_a_store_in_memory_gives_the_same() -> None:
    store = memory_store()
    assert store.refs.create("refs/threads/x", A)
    assert store.refs.create("refs/threads/y/z", B)
    assert list_refs(store, "refs/threads/") == {"x": A}


def test_files_that_hold_no_id_are_told(store: Store) -> None:
    assert store.refs.create("refs/threads/x", A)
    folder = Path(store.path, "refs", "threads")
    (folder / "broken").write_text("not an id\n")
    (folder / "empty").write_text("")
    (folder / "empty.lock").write_text("")
    found = list_bad_files(store, "refs/threads/")
    assert found == ["refs/threads/broken", "refs/threads/empty"]
    assert list_bad_files(store, "refs/none/") == list_bad_files(memory_store(), "refs/") == []
