from pathlib import Path

from commands.world import World

from uwf_git.store.threads.local_files import (
    list_possibly_active,
    lock_drive,
    lock_thread,
    may_be_active,
)


def test_step_driver_and_run_leave_some(world: World) -> None:
    stepped, driven, left = (world.begun() for _ in range(3))
    Path(world.store.local_path("run", left)).mkdir(parents=True)
    with (
        lock_thread(world.store, stepped, since_ms=1),
        lock_drive(world.store, driven, since_ms=1),
    ):
        assert list_possibly_active(world.store) == [left, driven, stepped]
        assert all(may_be_active(world.store, each) for each in (left, driven, stepped))
    assert list_possibly_active(world.store) == [left]
