"""Refs on the disk; what every kind of refs must do is in test_contract.py."""

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fresh_store import fresh_store
from store.conftest import Git
from store.killing import dies_at
from store.story import Story

from uwf_git.model.names import Oid
from uwf_git.store import locks as ref_lock
from uwf_git.store.locks import RefLocked
from uwf_git.store.refs import (
    BadRef,
    BadRefFile,
    Refs,
    check_head,
    check_loose_refs,
    check_packed_refs,
    stamp_packed,
)
from uwf_git.store.store import Store

NAME = "refs/threads/01J7K9M2XNPQR5VWBCDF8G3H4T"
TO_NAME = NAME.replace("threads", "archive")


@pytest.fixture
def commits(store: Store, clock: Callable[[], int]) -> tuple[Oid, Oid]:
    """Write two commits, and leave the first at NAME."""
    story = Story(store, clock)
    return story.head.commit, story.write_step("writer", "text")


def durable(store: Store) -> Refs:
    return Refs(store.path, durable=True)


def pack(store: Store) -> None:
    """Pack all refs as `git pack-refs --all` does, without its 10 ms."""
    names = [
        f"refs/{each}/{name}"
        for each in ("cas", "threads", "archive")
        for name in store.refs.names(f"refs/{each}/")
    ]
    lines = "".join(f"{store.refs.find(name)} {name}\n" for name in sorted(names))
    Path(store.path, "packed-refs").write_text(
        f"# pack-refs with: peeled fully-peeled sorted \n{lines}"
    )
    for name in names:
        Path(store.path, name).unlink(missing_ok=True)


def survives(
    store: Store, git: Git, *, begin: Callable[[], object], act: Callable[[], bool]
) -> list[tuple[Oid | None, Oid | None]]:
    """Kill *act* at every moment; each time it can be done again as if nothing had happened.

    Gives where NAME and TO_NAME were each time it was killed.
    """
    found = []
    for moment in itertools.count(1):
        begin()
        before = where(store)
        if not dies_at(moment, act):
            break
        found.append(where(store))
        if act():
            assert found[-1] == before
        # A leftover lock file blocks git, and no other program would ever remove it.
        assert [path.name for path in Path(store.path).rglob("*.lock")] == []
        if moment % 25 == 1:
            assert git("fsck", "--strict", "--no-dangling", cwd=Path(store.path)) == ""
    assert len(found) >= 8
    return found


def where(store: Store) -> tuple[Oid | None, Oid | None]:
    return store.refs.find(NAME), store.refs.find(TO_NAME)


def put(store: Store, *, here: Oid | None, there: Oid | None, packed: bool) -> None:
    """Put NAME and TO_NAME, the packed one with another value below the loose one."""
    for name, oid in ((NAME, here), (TO_NAME, there)):
        now = store.refs.find(name)
        if now is not None:
            store.refs.delete(name, seen=now)
        if oid is not None:
            store.refs.create(name, oid)
    if packed:
        pack(store)


@pytest.mark.parametrize("is_durable", [True, False])
def test_each_name_that_comes_or_goes_is_forced_to_the_disk_with_its_folders(
    store: Store, commits: tuple[Oid, Oid], monkeypatch: pytest.MonkeyPatch, *, is_durable: bool
) -> None:
    one, other = commits
    refs = Refs(store.path, durable=is_durable)
    synced: list[str] = []

    def fsync(descriptor: int) -> None:
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{descriptor}"), store.path))

    monkeypatch.setattr(os, "fsync", fsync)

    def forces(act: Callable[[], bool]) -> set[str]:
        synced.clear()
        # Another process makes a folder of refs, and is killed before it forces its name.
        Path(store.path, "refs", f"new-{len(made)}").mkdir()
        made.append(act())
        return {path for path in synced if path in {".", "refs"} or path.startswith("refs/")}

    made: list[bool] = []
    threads, packed = {"refs/threads", "refs"}, {"."}
    done = [
        forces(lambda: refs.advance(NAME, seen=one, to=other)) >= threads,
        forces(lambda: refs.create(f"{NAME}0", one)) >= threads,
        forces(lambda: refs.move(NAME, seen=other, to_name=TO_NAME, to=one)) >= threads | packed,
        forces(lambda: refs.delete(TO_NAME, seen=one)) >= packed,
    ]
    assert done == [is_durable] * 4
    assert made == [True] * 4


@pytest.mark.parametrize("packed", [False, True])
def test_an_advance_killed_anywhere_is_done_or_not_begun(
    store: Store, commits: tuple[Oid, Oid], git: Git, *, packed: bool
) -> None:
    refs, (one, other) = durable(store), commits
    found = survives(
        store,
        git,
        begin=lambda: put(store, here=one, there=None, packed=packed),
        act=lambda: refs.advance(NAME, seen=one, to=other),
    )
    assert set(found) == {(one, None), (other, None)}


def test_a_creation_killed_anywhere_is_done_or_not_begun(
    store: Store, commits: tuple[Oid, Oid], git: Git
) -> None:
    refs, (one, _other) = durable(store), commits

    def begin() -> None:
        put(store, here=None, there=None, packed=False)
        # So that making the folder is cut short as well.
        Path(store.path, NAME).parent.rmdir()

    found = survives(store, git, begin=begin, act=lambda: refs.create(NAME, one))
    assert set(found) == {(None, None), (one, None)}


@pytest.mark.parametrize("packed", [False, True])
def test_a_deletion_killed_anywhere_is_done_or_not_begun(
    store: Store, commits: tuple[Oid, Oid], git: Git, *, packed: bool
) -> None:
    refs, (one, other) = durable(store), commits

    def begin() -> None:
        put(store, here=one, there=None, packed=packed)
        refs.advance(NAME, seen=one, to=other)

    found = survives(store, git, begin=begin, act=lambda: refs.delete(NAME, seen=other))
    assert set(found) == {(other, None), (None, None)}


@pytest.mark.parametrize("packed", [False, True])
def test_a_move_killed_anywhere_loses_neither_place(
    store: Store, commits: tuple[Oid, Oid], git: Git, *, packed: bool
) -> None:
    refs, (one, other) = durable(store), commits
    found = survives(
        store,
        git,
        begin=lambda: put(store, here=one, there=None, packed=packed),
        act=lambda: refs.move(NAME, seen=one, to_name=TO_NAME, to=other),
    )
    # Both, for a moment, unless packed-refs tells of both: the archive wins.
    between = set() if packed else {(one, other)}
    assert set(found) == {(one, None), *between, (None, other)}


def test_git_that_lists_refs_during_a_move_finds_one_of_both(store: Store) -> None:
    """Else `git repack -ad` drops what only this ref needs."""
    oid = Oid("1" * 40)
    # What git reads between refs/archive and refs/threads takes it some 50 ms.
    folder = Path(store.path, "refs/between")
    folder.mkdir()
    for number in range(5000):
        (folder / f"{number}").write_text(f"{oid}\n")
    for number in range(20):
        name, to_name = (f"refs/{kind}/{number:02}" for kind in ("threads", "archive"))
        store.refs.create(name, oid)
        listing = subprocess.Popen(
            ["git", "for-each-ref", "--format=%(refname)"], cwd=store.path, stdout=subprocess.PIPE
        )
        for _tick in range(number):
            time.sleep(0.0025)
        assert store.refs.move(name, seen=oid, to_name=to_name, to=oid)
        assert set(listing.communicate()[0].decode().split()) & {name, to_name}


RACE = """
import sys
from uwf_git.store.refs import Oid, Refs
from uwf_git.store.store import open_store
git_dir, which, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
refs = open_store(git_dir).refs
won = 0
for time in range(times):
    WHAT
print(won)
"""


def race(store: Store, what: str, *, times: int, racers: int = 8) -> list[int]:
    """Let processes do *what* so many times each; return how often each of them won."""
    script = RACE.replace("WHAT", what)
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, store.path, str(which), str(times)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for which in range(racers)
    ]
    told = [process.communicate()[0] for process in started]
    assert [process.returncode for process in started] == [0] * racers
    return [int(each) for each in told]


def test_of_many_processes_that_advance_one_ref_each_wins_exactly_once(store: Store) -> None:
    """The ref counts: a success moves it from n to n + 1, so none may be lost or done twice."""
    store.refs.create("refs/cas/count", Oid(f"{0:040x}"))
    won = race(
        store,
        """
    while True:
        seen = refs.find("refs/cas/count")
        if refs.advance("refs/cas/count", seen=seen, to=Oid(f"{int(seen, 16) + 1:040x}")):
            won += 1
            break
""",
        times=10,
    )
    assert won == [10] * 8
    assert store.refs.find("refs/cas/count") == f"{80:040x}"


def test_of_a_step_and_an_end_exactly_one_wins(store: Store) -> None:
    """Racers 0, 2, … step and racers 1, 3, … end, all from the same place."""
    for number in range(10):
        store.refs.create(f"refs/threads/{number}", Oid("0" * 40))
    what = """
    name, seen = f"refs/threads/{time}", Oid("0" * 40)
    if which % 2:
        won += refs.move(name, seen=seen, to_name=f"refs/archive/{time}", to=Oid("1" * 40))
    else:
        won += refs.advance(name, seen=seen, to=Oid("2" * 40))
"""
    assert sum(race(store, what, times=10)) == 10
    active, archived = (store.refs.names(f"refs/{each}/") for each in ("threads", "archive"))
    assert sorted(active + archived) == [str(time) for time in range(10)]


def test_packing_by_git_while_refs_come_and_go_loses_nothing(
    store: Store, commits: tuple[Oid, Oid], git: Git
) -> None:
    one, other = commits
    for number in range(40):
        store.refs.create(f"refs/cas/{number}", one)
    packing = subprocess.Popen(
        ["/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do git pack-refs --all; done"],
        cwd=store.path,
        stderr=subprocess.DEVNULL,
    )
    for number in range(40):
        assert store.refs.advance(f"refs/cas/{number}", seen=one, to=other)
        if number % 2:
            assert store.refs.delete(f"refs/cas/{number}", seen=other)
    packing.wait()
    left = {number: store.refs.find(f"refs/cas/{number}") for number in range(40)}
    assert left == {number: None if number % 2 else other for number in range(40)}
    told = git(
        "for-each-ref", "--format=%(refname) %(objectname)", "refs/cas/", cwd=Path(store.path)
    )
    assert told == "".join(
        f"refs/cas/{number} {other}\n" for number in sorted(range(0, 40, 2), key=str)
    )


def test_a_ref_whose_guard_is_that_of_packed_refs_is_deleted(store: Store, git: Git) -> None:
    """Guards are few; packed-refs is locked while the ref is, so its guard is its own."""
    names = [f"refs/cas/{number}" for number in range(200)]
    git(
        "update-ref",
        "--stdin",
        cwd=Path(store.path),
        stdin="".join(f"create {name} {EMPTY_TREE}\n" for name in names),
    )
    git("pack-refs", "--all", cwd=Path(store.path))
    for name in names:
        assert store.refs.delete(name, seen=Oid(EMPTY_TREE))
    assert store.refs.names("refs/cas/") == []


EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@pytest.mark.parametrize("name", [NAME, TO_NAME, "packed-refs"])
def test_a_lock_that_git_holds_is_waited_for_and_then_named(
    store: Store, commits: tuple[Oid, Oid], git: Git, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(ref_lock, "_PATIENCE_S", 0.02)
    one, other = commits
    git("pack-refs", "--all", cwd=Path(store.path))
    lock = Path(store.path, f"{name}.lock")
    lock.parent.mkdir(exist_ok=True)
    lock.touch()
    with pytest.raises(RefLocked) as caught:
        store.refs.move(NAME, seen=one, to_name=TO_NAME, to=other)
    assert str(lock) in caught.value.message
    assert caught.value.exit_status == 4
    assert list(Path(store.path).rglob("*.lock")) == [lock]
    assert store.refs.find(NAME) == one


def test_many_refs_are_moved_by_one_write_of_packed_refs(
    store: Store, commits: tuple[Oid, Oid], git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever they were: nowhere, loose, packed, both; only those that were elsewhere stay."""
    first, second = commits
    place = Path(store.path)
    names = [f"refs/threads/{number:026}" for number in range(60)]
    assert store.refs.change(dict.fromkeys(names, (None, first))) == set(names)
    assert git("for-each-ref", "refs/threads", cwd=place).count(first) == 61
    assert not list(place.glob("refs/threads/00*"))
    assert store.refs.advance(names[0], seen=first, to=second)
    assert store.refs.advance(names[1], seen=first, to=second)
    assert store.refs.create(TO_NAME, first)
    written: list[bytes] = []

    def write(_refs: Refs, content: bytes) -> None:
        written.append(content)
        Path(store.path, "packed-refs").write_bytes(content)

    monkeypatch.setattr(Refs, "_replace_packed", write)
    changes: dict[str, tuple[Oid | None, Oid | None]] = dict.fromkeys(names, (first, None))
    changes |= {names[0]: (second, None), names[1]: (first, second), TO_NAME: (first, second)}
    changes |= {names[2]: (second, None), names[3]: (first, second), names[4]: (None, second)}

    assert set(names) - store.refs.change(changes) == {names[1], names[2], names[4]}
    assert len(written) == 1
    assert git("for-each-ref", "--format=%(objectname) %(refname)", cwd=place).split() == [
        *(second, TO_NAME),
        *(second, names[1], first, names[2], second, names[3], first, names[4]),
        *(first, NAME),
    ]
    assert git("fsck", cwd=place) == ""


def test_a_process_that_held_the_lock_meanwhile_wins(
    store: Store, commits: tuple[Oid, Oid], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has looked before packed-refs was replaced, and writes its file afterwards."""
    first, second = commits

    def replace_late(_refs: Refs, content: bytes) -> None:
        Path(store.path, "packed-refs").write_bytes(content)
        Path(store.path, TO_NAME).parent.mkdir(exist_ok=True)
        Path(store.path, TO_NAME).write_text(f"{second}\n")

    monkeypatch.setattr(Refs, "_replace_packed", replace_late)
    assert store.refs.change({TO_NAME: (None, first)}, at_once=True) == set()
    assert store.refs.find(TO_NAME) == second


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"ref: refs/heads/main\n", b"g" * 40, b"1" * 39, b"1" * 41, b"\0" * 41]
)
def test_a_ref_file_that_holds_no_object_id_is_damage(store: Store, content: bytes) -> None:
    path = Path(store.path, NAME)
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(BadRef, match=NAME) as caught:
        store.refs.find(NAME)
    assert caught.value.exit_status == 5


def test_a_packed_ref_that_holds_no_object_id_is_damage(store: Store) -> None:
    Path(store.path, "packed-refs").write_text(f"{'x' * 40} {NAME}\n")
    with pytest.raises(BadRef, match=NAME):
        store.refs.find(NAME)


def test_stamp_of_packed_refs_holds_once_they_have_not_just_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a tick another file could have the same stamp, on some file systems for a second."""
    path, place = tmp_path / "packed-refs", str(tmp_path)
    assert stamp_packed(place) == stamp_packed(place) == ""
    path.touch()
    soon = time.time() + 3600
    os.utime(path, (soon, soon))
    assert stamp_packed(place) != stamp_packed(place)

    monkeypatch.setattr(time, "time_ns", lambda: int(soon + 3600) * 10**9)
    held = stamp_packed(place)
    assert held == stamp_packed(place)
    path.write_text("another")
    assert stamp_packed(place) != held


def test_a_folder_is_no_ref(store: Store) -> None:
    Path(store.path, NAME).mkdir(parents=True)
    assert store.refs.find(NAME) is None
    assert store.refs.find(f"{NAME}/below") is None
    assert store.refs.names("refs/threads/") == []


# What git says of HEAD, the files of refs, and packed-refs.

A, B = Oid("a" * 40), Oid("b" * 40)
SORTED = "# pack-refs with: peeled fully-peeled sorted \n"
ROW = f"{A} refs/threads/x\n"


@pytest.fixture
def path() -> Path:
    return Path(fresh_store().path)


@pytest.mark.parametrize("content", ["ref: refs/heads/main\n", "ref:\trefs/heads/a/b", f"{A}\n"])
def test_a_head_at_a_branch_or_a_commit_is_right(path: Path, content: str) -> None:
    (path / "HEAD").write_text(content)
    assert list(check_head(str(path))) == []


@pytest.mark.parametrize(
    "content",
    ["", "\0" * 21, "ref: refs/threads/x\n", "ref: refs/heads/a..b\n", "ref: refs/heads/a\nmore\n"],
)
def test_any_other_head_is_wrong(path: Path, content: str) -> None:
    (path / "HEAD").write_text(content)
    (bad,) = check_head(str(path))
    assert bad.name == "HEAD"
    assert f"> {path}/HEAD" in bad.hint


@pytest.mark.parametrize("content", ["", ROW, SORTED, SORTED + ROW + f"^{B}\n{A} refs/threads/y\n"])
def test_what_git_packs_is_right(path: Path, content: str) -> None:
    if content:
        (path / "packed-refs").write_text(content)
    assert list(check_packed_refs(str(path))) == []


def test_what_git_would_not_pack_is_wrong(path: Path) -> None:
    for content, problem in [
        ("", "is empty"),
        (f"{SORTED[:-1]}{ROW}", "no header"),
        (f"{SORTED}garbage\n{ROW}", "names no ref: b'garbage'"),
        (f"{SORTED}{ROW}\n", "names no ref: b''"),
        (f"{SORTED}{ROW[:-1]}", "names no ref"),
        (f"{SORTED}{ROW[:-1]} {ROW}", "a name that git refuses"),
        (f"{SORTED}{ROW}{ROW}", "says that it is sorted"),
        (f"{SORTED}{ROW}{A} refs/archive/x\n", "says that it is sorted"),
    ]:
        (path / "packed-refs").write_text(content)
        (bad,) = check_packed_refs(str(path))
        assert problem in bad.problem


def test_each_file_of_a_ref_is_read_whatever_folder_it_is_in(path: Path) -> None:
    files = {"heads/main": "", "heads/x": A, "uwf/remotes/o/threads/y": "0", "heads/z.lock": ""}
    for name, content in files.items():
        (path / "refs" / name).parent.mkdir(parents=True, exist_ok=True)
        (path / "refs" / name).write_text(content)
    (path / "refs/heads/sym").write_text("ref: refs/heads/x\n")
    os.mkfifo(path / "refs/heads/pipe")

    found = dict(check_loose_refs(str(path)))

    assert found.pop("refs/heads/x") == A
    assert sorted(found) == ["refs/heads/main", "refs/heads/pipe", "refs/uwf/remotes/o/threads/y"]
    assert all(isinstance(each, BadRefFile) for each in found.values())


def test_ref_that_goes_while_refs_are_read_is_no_bad_ref(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (path / "refs" / name).write_text(f"{A}\n")
    found = check_loose_refs(str(path))
    assert next(found) == ("refs/a", A)
    (path / "refs" / "b").unlink()

    def is_file(place: str) -> bool:
        """Look, and let another process delete the ref."""
        is_there = os.path.exists(place)
        Path(place).unlink(missing_ok=True)
        return is_there

    monkeypatch.setattr(os.path, "isfile", is_file)
    assert list(found) == []
