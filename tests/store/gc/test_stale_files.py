"""Stale files: those of dead processes are removed, those still in use stay."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from store.killing import dies_at
from store.story import THREAD, Story

from uwf_git.model.names import ThreadId
from uwf_git.store.locks import hold_lock, hold_ref_lock, markers
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE
from uwf_git.store.threads.local_files import find_workdir, lock_thread, log_path, set_workdir
from uwf_git.store.tidy import remove_stale_files

LONG_AGO = (1_000_000_000, 1_000_000_000)
NOBODY = ThreadId("01J7K9M2XNPQR5VWBCDF8G3H4V")


def leave(path: str | Path, *, is_old: bool = True) -> Path:
    """Make a file with the folders above it."""
    there = Path(path)
    there.parent.mkdir(parents=True, exist_ok=True)
    there.touch()
    if is_old:
        os.utime(there, LONG_AGO)
    return there


@pytest.mark.parametrize("name", [".tmp_0123", "objects/tmp_obj_0123", "uwf-workdirs/.tmp_0123"])
def test_a_temporary_file_is_swept_when_it_is_old(store: Store, name: str) -> None:
    path = leave(f"{store.path}/{name}", is_old=False)
    assert remove_stale_files(store) == 0
    assert path.exists()
    os.utime(path, LONG_AGO)
    assert remove_stale_files(store) == 1
    assert not path.exists()
    assert remove_stale_files(store) == 0


@pytest.mark.parametrize("name", ["packed-refs", "config", "refs/threads/a%2Fb", "refs/archive/x"])
def test_a_lock_that_a_dead_process_left_is_broken(store: Store, name: str) -> None:
    def take() -> None:
        with hold_ref_lock(store.path, name, b"", durable=False) as lock:
            # The moment before which it is killed.
            os.utime(lock)

    lock = Path(store.path, f"{name}.lock")
    lock.parent.mkdir(exist_ok=True)
    moment = 1
    while not lock.exists():
        assert dies_at(moment, take)
        moment += 1
    assert remove_stale_files(store) == 1
    assert not lock.exists()
    assert all(path.startswith(("guard-", ".tmp_")) for path in os.listdir(markers(store.path)))


def test_held_lock_is_left(store: Store) -> None:
    with hold_ref_lock(store.path, "refs/threads/x", b"", durable=False) as lock:
        assert remove_stale_files(store) == 0
        assert os.path.exists(lock)


@pytest.mark.parametrize("is_ended", [False, True])
def test_what_belongs_to_a_thread_goes_when_it_has_ended(
    store: Store, story: Story, *, is_ended: bool
) -> None:
    if is_ended:
        story.end()
    set_workdir(store, THREAD, "/somewhere")
    leave(f"{store.path}/uwf-workdirs/{THREAD}")
    run = leave(f"{store.path}/uwf/run/{THREAD}/{story.head.commit}.turn")
    lock = leave(f"{store.path}/uwf/locks/{THREAD}")
    assert remove_stale_files(store) == is_ended
    assert [run.exists(), lock.exists()] == [not is_ended] * 2
    assert (find_workdir(store, THREAD) is None) == is_ended


def test_the_log_of_a_thread_that_has_ended_is_left_for_a_day(store: Store, story: Story) -> None:
    log = leave(log_path(store, THREAD))
    assert remove_stale_files(store) == 0
    story.end()
    leave(log, is_old=False)
    os.utime(log)
    # What else there is goes at once.
    leave(f"{store.path}/uwf/locks/{THREAD}")
    assert remove_stale_files(store) == 1
    assert log.exists()
    os.utime(log, LONG_AGO)
    assert remove_stale_files(store) == 1
    assert not log.exists()
    assert remove_stale_files(store) == 0


def test_a_work_directory_that_waits_for_its_thread_is_left_for_a_day(store: Store) -> None:
    set_workdir(store, NOBODY, "/somewhere")
    assert remove_stale_files(store) == 0
    leave(f"{store.path}/uwf-workdirs/{NOBODY}")
    assert remove_stale_files(store) == 1
    assert find_workdir(store, NOBODY) is None


def test_files_of_no_thread_and_locks_of_git_are_left(store: Store) -> None:
    own = ("locks/init", "run/x", "index/x", "logs/notes.log")
    names = [*(f"uwf/{name}" for name in own), "refs/threads/x.lock"]
    paths = [leave(f"{store.path}/{name}") for name in names]
    assert remove_stale_files(store) == 0
    assert all(path.exists() for path in paths)


def test_nothing_of_a_held_thread_is_removed(store: Store, clock: Callable[[], int]) -> None:
    Story(store, clock).end()
    run = leave(f"{store.path}/uwf/run/{THREAD}/x.turn")
    with lock_thread(store, THREAD, since_ms=0):
        assert remove_stale_files(store) == 0
    assert run.exists()


def test_nothing_of_a_thread_with_a_living_agent_is_removed(
    store: Store, clock: Callable[[], int]
) -> None:
    Story(store, clock).end()
    alive = leave(f"{store.path}/uwf/run/{THREAD}/x.alive")
    with hold_lock(str(alive), wait=False):
        assert remove_stale_files(store) == 0
    assert alive.exists()
    assert remove_stale_files(store) == 1
    assert not alive.exists()


@pytest.mark.parametrize("steps_back", [0, 1, 2])
def test_an_active_ref_beside_the_archive_that_goes_on_from_it_is_swept(
    store: Store, story: Story, steps_back: int
) -> None:
    commits = [story.head.commit, story.step().commit, story.end().commit]
    store.refs.create(ACTIVE + THREAD, commits[2 - steps_back])
    assert remove_stale_files(store) == 1
    assert store.refs.find(ACTIVE + THREAD) is None
    assert store.refs.find(ARCHIVE + THREAD) == commits[2]


def test_work_on_a_thread_that_was_ended_elsewhere_is_kept(store: Store, story: Story) -> None:
    begun = story.head
    stepped = story.step().commit
    story.head = begun
    store.refs.advance(ACTIVE + THREAD, seen=stepped, to=begun.commit)
    ended = story.end().commit
    store.refs.create(ACTIVE + THREAD, stepped)
    assert remove_stale_files(store) == 0
    assert store.refs.find(ACTIVE + THREAD) == stepped
    assert store.refs.find(ARCHIVE + THREAD) == ended
