import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commands.world import World, read_thread
from store.due import make_due
from store.small_packs import unpacked_in

from uwf_git.commands.admin import gc_if_due, gc_store, gc_unwatched, is_gc_due, tidy
from uwf_git.store.git.program import ProgramFailed
from uwf_git.store.packing import (
    NO_GIT,
    count_files,
    has_failed_lately,
    hold_gc_lock,
    is_gc_running,
    take_gc_log,
    write_gc_log,
)

Git = Callable[..., str]


def due(world: World) -> None:
    """Make the store due for packing."""
    make_due(world.store.path)
    world.reopen()


def test_everything_works_afterwards_and_is_smaller(world: World, git: Git) -> None:
    thread, ended = world.begun(), world.begun()
    world.step(thread)
    while world.step(ended).role is not None:
        pass
    read = read_thread(world.store, thread), read_thread(world.store, ended)
    collected = gc_store(world.store, world.caller.environ)
    assert collected.before.packs > 5
    assert collected.after[:2] == (0, 1)
    assert collected.after.size_bytes < collected.before.size_bytes
    world.reopen()
    assert (read_thread(world.store, thread), read_thread(world.store, ended)) == read
    assert not list(Path(world.store.path, "refs").rglob("01*"))
    assert world.step(thread).role == "checker"
    assert world.step(thread).status == "completed"
    assert world.put().changed is False
    assert git("fsck", "--strict", "--no-dangling", cwd=Path(world.store.path)) == ""


def test_leftovers_of_killed_processes_are_removed_and_counted(world: World) -> None:
    world.begun()
    stray = Path(world.store.path, "objects", "tmp_obj_1")
    stray.touch()
    os.utime(stray, (1_000_000_000, 1_000_000_000))
    assert gc_store(world.store, world.caller.environ).swept == 1
    assert not stray.exists()


def test_thousands_of_refs_are_packed_and_objects_are_left(world: World) -> None:
    thread = world.begun()
    commit = world.store.refs.find(f"refs/threads/{thread}")
    archive = Path(world.store.path, "refs", "archive")
    archive.mkdir()
    for number in range(1001):
        (archive / f"01J{number:023}").write_text(f"{commit}\n")
    assert gc_if_due(world.store, world.caller.environ)
    assert list(archive.iterdir()) == []
    assert unpacked_in(world.store) > 0
    assert not is_gc_due(world.store)


def test_nothing_begins_beside_another_or_after_a_failure(world: World) -> None:
    due(world)
    with hold_gc_lock(world.store):
        assert not is_gc_due(world.store)
        assert not gc_if_due(world.store, world.caller.environ)
    write_gc_log(world.store, "why")
    assert not is_gc_due(world.store)
    assert not gc_unwatched(world.store, world.caller.environ)


def test_failure_in_the_background_is_logged(world: World) -> None:
    world.begun()
    due(world)
    world.caller = world.caller._replace(environ={"PATH": str(world.place)})
    world.program("echo 'fatal: no space' >&2; exit 128", name="git")
    with pytest.raises(ProgramFailed, match="no space"):
        gc_if_due(world.store, world.caller.environ)
    assert not has_failed_lately(world.store)
    tidy(world.store, world.caller.environ)
    assert has_failed_lately(world.store)
    assert take_gc_log(world.store) == "git gc failed: fatal: no space"


def test_without_git_a_store_goes_on_and_says_so_once(world: World) -> None:
    thread = world.begun()
    due(world)
    environ = {**world.caller.environ, "PATH": ""}
    packs = count_files(world.store).packs

    assert tidy(world.store, environ) == NO_GIT
    assert tidy(world.store, environ) is None

    assert count_files(world.store).packs == packs
    assert world.step(thread).role == "writer"


def test_store_that_stays_due_is_not_packed_again_for_a_day(world: World) -> None:
    world.begun()
    due(world)
    world.caller = world.caller._replace(environ={"PATH": str(world.place)})
    world.program("exit 0", name="git")
    assert gc_if_due(world.store, world.caller.environ)
    assert not is_gc_due(world.store)
    told = take_gc_log(world.store)
    assert told is not None
    assert "too young to be deleted" in told


def test_background_gc_returns_at_once(world: World) -> None:
    world.begun()
    due(world)
    world.configure("gc.autoDetach", "true")
    tidy(world.store, world.caller.environ)
    deadline = time.monotonic() + 20
    while count_files(world.store).packs == 0 or is_gc_running(world.store):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_one_that_cannot_be_started_is_kept_as_a_failure(world: World) -> None:
    due(world)
    world.configure("gc.autoDetach", "true")
    tidy(world.store, {"NUL": "\0"})
    told = take_gc_log(world.store)
    assert told is not None
    assert "could not be started" in told


def test_in_a_shared_store_the_group_may_pack_as_well(world: World) -> None:
    world.begun()
    world.configure("core.sharedRepository", "group")
    before = os.umask(0o022)
    try:
        gc_store(world.store, world.caller.environ)
    finally:
        os.umask(before)
    for name in ("uwf/locks/gc", "packed-refs"):
        assert Path(world.store.path, name).stat().st_mode & 0o060 == 0o060
