"""Packing refs, judged by what git makes of the result."""

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from store.conftest import Git
from store.killing import dies_at
from store.story import THREAD, Story

from uwf_git.store.disk import locks as ref_lock
from uwf_git.store.disk.locks import RefLocked, break_dead_locks
from uwf_git.store.gc.tidy import pack_refs
from uwf_git.store.refs.refs import BadPackedRefs
from uwf_git.store.store import Store

NAME = f"refs/threads/{THREAD}"
OTHER = "refs/archive/01J7K9M2XNPQR5VWBCDF8G3H4V"


@pytest.fixture
def story(store: Store, clock: Callable[[], int]) -> Story:
    """Return a thread, whose first commit has an archive ref of another thread as well."""
    told = Story(store, clock)
    assert store.refs.create(OTHER, told.head.commit)
    return told


def refs_of(store: Store, git: Git) -> str:
    return git("for-each-ref", cwd=Path(store.path))


def loose_refs(store: Store) -> list[str]:
    root = Path(store.path)
    return sorted(
        str(path.relative_to(root)) for path in (root / "refs").rglob("*") if path.is_file()
    )


def as_git_would(store: Store, git: Git) -> bytes:
    """Return the packed-refs that git writes for the same refs."""
    path = Path(store.path, "packed-refs")
    ours = path.read_bytes()
    git("pack-refs", "--all", cwd=Path(store.path))
    theirs = path.read_bytes()
    path.write_bytes(ours)
    return theirs


def test_every_loose_ref_becomes_a_line_that_git_would_write(
    story: Story, store: Store, git: Git
) -> None:
    before = refs_of(store, git)
    assert pack_refs(store) == 2
    assert loose_refs(store) == []
    assert refs_of(store, git) == before
    assert Path(store.path, "packed-refs").read_bytes() == as_git_would(store, git)


def test_what_moved_since_it_was_packed_is_packed_anew(
    story: Story, store: Store, git: Git
) -> None:
    pack_refs(store)
    story.step()
    before = refs_of(store, git)
    assert pack_refs(store) == 1
    assert refs_of(store, git) == before
    assert store.refs.find(NAME) == story.head.commit


def test_with_nothing_loose_nothing_is_written(story: Story, store: Store) -> None:
    pack_refs(store)
    before = Path(store.path, "packed-refs").stat()
    assert pack_refs(store) == 0
    assert Path(store.path, "packed-refs").stat() == before


def test_an_empty_store_gets_no_packed_refs(store: Store) -> None:
    assert pack_refs(store) == 0
    assert not Path(store.path, "packed-refs").exists()


def test_tags_are_packed_with_what_they_point_at(story: Story, store: Store, git: Git) -> None:
    place = Path(store.path)
    git("tag", "-m", "words", "v1", story.head.commit, cwd=place)
    git("tag", "-m", "more words", "v2", "v1", cwd=place)
    pack_refs(store)
    assert Path(store.path, "packed-refs").read_bytes() == as_git_would(store, git)
    assert f"^{story.head.commit}\n" in Path(store.path, "packed-refs").read_text()


@pytest.mark.parametrize("header", ["", "# pack-refs with: peeled \n"])
def test_a_file_of_an_older_kind_becomes_one_of_the_newest(
    header: str, story: Story, store: Store, git: Git
) -> None:
    """The old file is unsorted, and has tags without their peeled targets."""
    git("tag", "-m", "words", "v1", story.head.commit, cwd=Path(store.path))
    git("update-ref", "refs/uwf/tag", "refs/tags/v1", cwd=Path(store.path))
    lines = git("for-each-ref", "--format=%(objectname) %(refname)", cwd=Path(store.path))
    for name in loose_refs(store):
        Path(store.path, name).unlink()
    told = "".join(f"{line}\n" for line in reversed(lines.splitlines()))
    Path(store.path, "packed-refs").write_text(header + told)
    assert store.refs.create("refs/archive/new", story.head.commit)
    before = refs_of(store, git)
    assert pack_refs(store) == 1
    assert refs_of(store, git) == before
    assert Path(store.path, "packed-refs").read_text().count("\n^") == 2


def test_what_git_does_not_pack_stays_as_it_is(story: Story, store: Store, git: Git) -> None:
    place = Path(store.path)
    git("symbolic-ref", "refs/uwf/link", NAME, cwd=place)
    git("update-ref", "refs/bisect/bad", story.head.commit, cwd=place)
    Path(place, "refs/archive/broken").write_text("nothing\n")
    Path(place, "refs/archive/missing").write_text("1" * 40 + "\n")
    Path(place, "refs/archive/bad name").write_text(story.head.commit + "\n")
    pack_refs(store)
    assert loose_refs(store) == [
        "refs/archive/bad name",
        "refs/archive/broken",
        "refs/archive/missing",
        "refs/bisect/bad",
        "refs/uwf/link",
    ]


def test_a_line_that_names_no_ref_is_damage_and_nothing_is_changed(
    story: Story, store: Store
) -> None:
    path = Path(store.path, "packed-refs")
    path.write_text(f"{story.head.commit} {OTHER}2\nwhat is this?\n{story.head.commit} {OTHER}\n")
    before = path.read_bytes()
    with pytest.raises(BadPackedRefs, match="what is this"):
        pack_refs(store)
    assert path.read_bytes() == before
    assert len(loose_refs(store)) == 2


def test_a_ref_that_is_locked_is_packed_and_stays_loose_as_well(
    story: Story, store: Store, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ref_lock, "_PATIENCE_S", 0.01)
    before = refs_of(store, git)
    Path(store.path, f"{NAME}.lock").touch()
    assert pack_refs(store) == 1
    assert store.refs.find(NAME) == story.head.commit
    Path(store.path, f"{NAME}.lock").unlink()
    assert refs_of(store, git) == before


def test_packed_refs_locked_by_git_is_named(
    story: Story, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ref_lock, "_PATIENCE_S", 0.01)
    Path(store.path, "packed-refs.lock").touch()
    with pytest.raises(RefLocked):
        pack_refs(store)
    assert len(loose_refs(store)) == 2


def test_packing_killed_anywhere_changes_no_ref_and_can_be_done_again(
    story: Story, store: Store, git: Git
) -> None:
    tried = 0
    for moment in itertools.count(1):
        story.step()
        before = refs_of(store, git)
        if not dies_at(moment, lambda: pack_refs(store)):
            break
        tried += 1
        assert refs_of(store, git) == before
        assert store.refs.find(NAME) == story.head.commit
        break_dead_locks(store.path)
        pack_refs(store)
        assert refs_of(store, git) == before
        assert loose_refs(store) == [], "a lock or a temporary file"
        assert not Path(store.path, "packed-refs.lock").exists()
    assert tried > 15
    assert git("fsck", "--strict", "--no-dangling", cwd=Path(store.path)) == ""


def test_refs_that_move_and_go_meanwhile_are_neither_lost_nor_back(
    story: Story, store: Store, git: Git
) -> None:
    """One process packs all the time; git and we make, move and delete refs beside it."""
    names = [f"refs/threads/{number:026}" for number in range(8)]
    two = story.write_step("writer", "text")
    pid = os.fork()
    if pid == 0:
        try:
            while True:
                pack_refs(store)
        finally:
            os._exit(1)
    try:
        for count in range(12):
            for name in names:
                assert store.refs.create(name, story.head.commit)
                assert store.refs.advance(name, seen=story.head.commit, to=two)
                assert store.refs.find(name) == two
            if count % 4 == 0:
                git("update-ref", names[0], story.head.commit, two, cwd=Path(store.path))
                git("update-ref", names[0], two, story.head.commit, cwd=Path(store.path))
            for name in names:
                assert store.refs.delete(name, seen=two)
                assert store.refs.find(name) is None
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    assert store.refs.names("refs/threads/") == [THREAD]
