"""A full disk, a broken one: nothing is left half, and the same command works afterwards."""

import errno
import os
from functools import partial

import pytest
from commands.killed import Action, check_with_git, copy_of, left_behind, make_folders, refs_of
from commands.world import World
from store.killing import fails_at, in_child, moments_of

from uwf_git.commands.admin import set_setting
from uwf_git.model.names import ThreadId
from uwf_git.store.git.config import set_config
from uwf_git.store.threads.heads import list_threads

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
BROKEN = OSError(errno.EIO, os.strerror(errno.EIO))


def fill_disk(world: World, action: Action) -> int:
    """Let the disk be full from every moment of *action* on; return the number of failures."""
    moments = moments_of(partial(action, copy_of(world)))
    failed = 0
    for number, moment in enumerate(moments, start=1):
        copy = copy_of(world)
        before = refs_of(copy.store)
        try:
            told = fails_at(number, FULL, partial(action, copy))
            if told is not None:
                failed += 1
                assert "No space left on device" in str(told)
                assert refs_of(copy.store) == before
                # The lock of a kill, beside that of the thread; swept with it.
                left = [name for name in left_behind(copy.store) if not name.endswith(".stop")]
                # Which a start says before the thread is there; swept when it is old.
                assert left in ([], [f"uwf-workdirs/{copy.new_id()}"])
                copy.reopen()
                action(copy)
            assert refs_of(copy.store) != before or action.__name__ == "change_setting"
            check_with_git(copy)
        except BaseException as error:
            error.add_note(f"full from moment {number} of {len(moments)} on: {moment}")
            raise
    copy.assert_whole()
    print(f"a disk that was full from each of {len(moments)} moments on; {failed} failed")  # noqa: T201 - for `pytest -rA`
    return failed


def begin(world: World) -> object:
    return world.start("nobody")


def step_first(world: World) -> object:
    return world.step(list_threads(world.store, archived=False)[0])


def kill_first(world: World) -> object:
    return world.kill(list_threads(world.store, archived=False)[0])


def change_setting(world: World) -> object:
    return set_setting(world.store, "uwf.agent", "new")


@pytest.mark.parametrize("action", [begin, step_first, kill_first, change_setting])
def test_a_full_disk_leaves_all_as_it_was_and_nothing_half(world: World, action: Action) -> None:
    world.begun()
    make_folders(world, action)
    assert fill_disk(world, action) > 5


def test_no_ref_moves_when_the_disk_fails_to_take_what_is_under_it(world: World) -> None:
    thread = world.begun()
    set_config(f"{world.store.path}/config", "uwf.fsync", "true")
    moved = []
    for number in range(1, 100):
        copy = copy_of(world)
        before = refs_of(copy.store)
        told = in_child(partial(step_on_broken_disk, number, copy, thread))
        if told is None:
            break
        assert str(told).startswith(f"[Errno {errno.EIO}] Input/output error: '/")
        moved.append(refs_of(copy.store) != before)
        assert list(left_behind(copy.store)) == []
        copy.reopen()
        copy.step(thread)
        check_with_git(copy)
    # Only the last comes after the move: it forces the ref's own name to the disk. What is above
    # is as this process forced it before, in the step of an earlier copy.
    assert moved == [False] * (len(moved) - 1) + [True]
    assert len(moved) > 4


def step_on_broken_disk(number: int, world: World, thread: ThreadId) -> str | None:
    left = iter(range(1, number))

    def fsync(descriptor: int) -> None:
        if next(left, None) is None:
            raise OSError(*BROKEN.args)
        force(descriptor)

    force = os.fsync
    setattr(os, "fsync", fsync)  # noqa: B010 - in a child alone, whatever its type
    try:
        world.step(thread)
    except OSError as error:
        return str(error)
    return None
