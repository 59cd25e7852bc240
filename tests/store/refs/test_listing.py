from collections.abc import Callable
from pathlib import Path

import pytest
from fresh_store import fresh_store

from uwf_git.store.oid import Oid
from uwf_git.store.refs.refs import BadPackedRefs, list_bad_files, list_refs
from uwf_git.store.store import Store, create_store

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
    assert list_refs(store.path, "refs/threads/") == {"both": B, "loose": C, "packed": B}


def test_only_refs_directly_below_the_prefix_are_listed(store: Store) -> None:
    folder = Path(store.path, "refs", "threads")
    folder.mkdir()
    (folder / "broken").write_text("not an id\n")
    assert store.refs.create("refs/threads/deeper/x", A)
    assert store.refs.create("refs/threads/x", B)
    (folder / "x.lock").write_text(f"{A}\n")
    assert list_refs(store.path, "refs/threads/") == {"x": B}
    assert list_refs(store.path, "refs/none/") == {}


def test_refs_in_deeper_folders_are_not_listed() -> None:
    store = fresh_store()
    assert store.refs.create("refs/threads/x", A)
    assert store.refs.create("refs/threads/y/z", B)
    assert list_refs(store.path, "refs/threads/") == {"x": A}


def test_files_without_an_object_id_are_listed(store: Store) -> None:
    assert store.refs.create("refs/threads/x", A)
    folder = Path(store.path, "refs", "threads")
    (folder / "broken").write_text("not an id\n")
    (folder / "empty").write_text("")
    (folder / "empty.lock").write_text("")
    found = list_bad_files(store.path, "refs/threads/")
    assert found == ["refs/threads/broken", "refs/threads/empty"]
    assert (
        list_bad_files(store.path, "refs/none/")
        == list_bad_files(fresh_store().path, "refs/")
        == []
    )


@pytest.mark.parametrize("content", ["", "garbage\n", f"{A[:30]}\n", "\0" * 41])
def test_a_broken_file_does_not_let_an_older_packed_value_through(
    store: Store, content: str
) -> None:
    Path(store.path, "packed-refs").write_text(f"{A} refs/threads/x\n{B} refs/threads/y\n")
    Path(store.path, "refs", "threads").mkdir()
    Path(store.path, "refs", "threads", "x").write_text(content)
    assert list_refs(store.path, "refs/threads/") == {"y": B}
    assert list_bad_files(store.path, "refs/threads/") == ["refs/threads/x"]


@pytest.mark.parametrize("line", ["garbage", "", f"{A}", f"{A[:39]} refs/threads/z", f"^{A}\n^{A}"])
def test_a_line_that_is_no_row_hides_no_ref(store: Store, line: str) -> None:
    rows = f"{A} refs/threads/x\n{line}\n{B} refs/threads/y\n"
    for header in ("", "# pack-refs with: peeled fully-peeled sorted \n"):
        Path(store.path, "packed-refs").write_text(header + rows)
        with pytest.raises(BadPackedRefs, match="names no ref"):
            list_refs(store.path, "refs/threads/")
        with pytest.raises(BadPackedRefs, match="names no ref"):
            store.refs.names("refs/threads/")
