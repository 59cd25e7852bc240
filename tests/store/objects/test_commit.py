from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from dulwich.objects import Blob, Commit, ObjectID, ShaFile, Tree
from fresh_store import fresh_store
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses
from store.conftest import Git
from store.story import Story, put_raw, signed

from uwf_git.store.objects.commit import (
    CommitDraft,
    CommitView,
    find_entry,
    read_commit,
    read_commit_file,
    write_commit,
)
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
WHO = "A U Thor <a@example.com> 1700000000 +0000"


def draft(store: Store, *parents: Oid, **files: bytes) -> CommitDraft:
    tree = Tree()
    blobs = {name: Blob.from_string(content) for name, content in files.items()}
    for name, blob in blobs.items():
        tree[name.replace("_", ".").encode()] = (0o100644, blob.id)
    views = tuple(read_commit(store.objects, parent) for parent in parents)
    return CommitDraft(tree, views, b"subject\n", list(blobs.values()))


def written(store: Store, *parents: Oid, now_ms: int = 0, **files: bytes) -> CommitView:
    oid = write_commit(store.objects, draft(store, *parents, **files), signed(now_ms))
    return read_commit(store.objects, oid)


def test_a_commit_reads_back(store: Store, git: Git) -> None:
    first = written(store, now_ms=1_700_000_000_999)
    view = written(store, first.oid, now_ms=1_700_000_001_000, a_json=b"{}")
    assert view.parents == (first.oid,)
    assert view.message == b"subject\n"
    assert view.author == b"C O Mitter <committer@example.com>"
    assert (first.time_s, view.time_s) == (1_700_000_000, 1_700_000_001)
    told = git("cat-file", "-p", view.oid, cwd=Path(store.path))
    assert told == (
        f"tree {view.tree.decode()}\nparent {first.oid}\n"
        "author C O Mitter <committer@example.com> 1700000001 +0000\n"
        "committer C O Mitter <committer@example.com> 1700000001 +0000\n\nsubject\n"
    )


def test_a_commit_is_never_older_than_a_parent(store: Store) -> None:
    parents = [written(store, now_ms=now).oid for now in (5000, 9000, 7000)]
    assert written(store, *parents, now_ms=1000).time_s == 9


def test_no_ref_moves(store: Store) -> None:
    written(store)
    assert not list(Path(store.path, "refs").rglob("*/*"))


def test_a_file_is_read(store: Store) -> None:
    view = written(store, a_json='{"a": "é"}'.encode(), b_txt=b"\xff")
    assert read_commit_file(store.objects, view, "b.txt") == b"\xff"
    assert find_entry(store.objects, view, "c") is None


def test_a_missing_file_is_damage(store: Store) -> None:
    view = written(store)
    with refuses("damaged-commit", match=rf"{view.oid} has no now\.json"):
        read_commit_file(store.objects, view, "now.json")


def test_a_missing_commit_is_damage(store: Store) -> None:
    with refuses("damaged-commit", match=f"{'1' * 40} is missing"):
        read_commit(store.objects, Oid("1" * 40))


def test_something_else_is_no_commit(store: Store) -> None:
    oid = put_raw(store, "blob", b"content").decode()
    with refuses("damaged-commit", match=f"{oid} is not a commit"):
        read_commit(store.objects, Oid(oid))


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [f"tree {EMPTY_TREE}"],
        [f"tree {EMPTY_TREE}", f"author {WHO}"],
        [f"tree {EMPTY_TREE}", f"author {WHO}", f"committer {WHO}"],
        ["tree x", f"author {WHO}", f"committer {WHO}", "", "subject"],
        [f"tree {EMPTY_TREE}", "parent ../..", f"author {WHO}", f"committer {WHO}", "", "subject"],
        [f"tree {EMPTY_TREE}", "author x", "committer x", "", "subject"],
        [f"tree {EMPTY_TREE}", f"author {WHO}", "committer A <a> x +0000", "", "subject"],
        [f"author {WHO}", f"committer {WHO}", "", "subject"],
        [f"tree {EMPTY_TREE}", f"committer {WHO}", f"author {WHO}", "", "subject"],
        [f"tree {EMPTY_TREE}", f"author {WHO}", f"parent {'1' * 40}", f"committer {WHO}", "", ""],
        [f"tree {EMPTY_TREE}", f"author {WHO}", f"committer {WHO}", "nonsense", "", "subject"],
        [f"tree {EMPTY_TREE}\r", f"author {WHO}", f"committer {WHO}", "", "subject"],
        ["nonsense"],
        ["nonsense", "", "subject"],
        ["\0"],
    ],
)
def test_a_commit_that_git_would_not_write_is_damage(store: Store, lines: list[str]) -> None:
    oid = Oid(put_raw(store, "commit", "\n".join(lines).encode()).decode())
    with refuses("damaged-commit", "damaged-object", match=oid):
        read_commit(store.objects, oid)


OIDS = st.binary(min_size=20, max_size=20).map(lambda raw: ObjectID(raw.hex().encode()))
WORDS = st.text(
    st.characters(exclude_characters="<>\n\0", exclude_categories=["Cs"]), max_size=20
).map(str.encode)
PERSONS = st.builds(lambda name, email: b"%s <%s>" % (name, email), WORDS, WORDS)
BODIES = st.binary(max_size=60) | st.sampled_from([b"parent x\n\ntree y\n", b"\n\ngpgsig a\n b\n"])


@st.composite
def commits(draw: st.DrawFn) -> Commit:
    commit = Commit()
    commit.tree = draw(OIDS)
    commit.parents = draw(st.lists(OIDS, max_size=3))
    commit.author, commit.committer = draw(PERSONS), draw(PERSONS)
    commit.author_time = draw(st.integers(0, 2**40))
    commit.commit_time = draw(st.integers(0, 2**40))
    commit.author_timezone = draw(st.integers(-99, 99)) * 900
    commit.commit_timezone = 0
    commit.encoding = draw(st.none() | st.just(b"latin-1"))
    commit.gpgsig = draw(st.none() | st.just(b"-----BEGIN\n\nparent 1\n author 2\n-----END"))
    commit.message = draw(BODIES)
    return commit


@given(commits())
def test_a_commit_is_read_as_dulwich_reads_it(commit: Commit) -> None:
    store = fresh_store()
    store.objects.add_objects([(commit, None)])
    oid = Oid(commit.id.decode())
    assert read_commit(store.objects, oid) == CommitView(
        oid=oid,
        parents=tuple(Oid(parent.decode()) for parent in commit.parents),
        tree=commit.tree,
        message=commit.message,
        author=commit.author,
        time_s=commit.commit_time,
    )


def test_a_missing_tree_is_reported_by_its_object_id(store: Store) -> None:
    lines = [f"tree {'1' * 40}", f"author {WHO}", f"committer {WHO}", "", "subject", ""]
    oid = Oid(put_raw(store, "commit", "\n".join(lines).encode()).decode())
    with refuses("damaged-object", match="1" * 40):
        find_entry(store.objects, read_commit(store.objects, oid), "now.json")


def test_every_object_is_written_once(store: Store, clock: Callable[[], int]) -> None:
    """Nodes in one folder share its trees."""
    given: list[ObjectID] = []

    class Noting(DurableObjects):
        def add_objects(self, objects: Iterable[tuple[ShaFile, str | None]], *_more: Any) -> None:
            noted = list(objects)
            given.extend(obj.id for obj, _path in noted)
            super().add_objects(noted)

    objects = Noting(f"{store.path}/objects")
    objects.durable = False
    Story(Store(store.path, objects, store.refs, store.config), clock)
    assert len(given) == len(set(given)) > 40


def test_a_clock_before_1970_is_1970(store: Store, git: Git) -> None:
    view = written(store, now_ms=-86_400_000)
    assert view.time_s == 0
    git("fsck", "--strict", view.oid, cwd=Path(store.path))


def test_a_clock_that_git_cannot_hold_commits_nothing(store: Store) -> None:
    last_ms = (1 << 34) * 1000 - 1
    before = written(store, now_ms=last_ms)
    assert before.time_s == (1 << 34) - 1
    with refuses("clock-too-late", match="after the year 2514") as caught:
        written(store, before.oid, now_ms=last_ms + 1, new=b"content")
    assert Blob.from_string(b"content").id not in store.objects
    assert "date" in (caught.value.hint or "")
