"""What git's gc leaves behind when it is killed."""

import os
import time
from pathlib import Path

from store.conftest import Git
from store.small_packs import gc, loose
from store.story import Story

from uwf_git.store.packing import hold_gc_lock
from uwf_git.store.store import Store


def test_git_killed_at_any_time_leaves_nothing_that_hinders(
    story: Story, store: Store, git: Git
) -> None:
    """Its whole process group, at moments spread over the time that it takes."""
    began = time.monotonic()
    gc(store)
    took_s = time.monotonic() - began
    killed = 0
    for number in range(_KILLS):
        for count in range(3):
            story.step(text=f"text {number} {count}")
        before = needed(store, git)
        killed += kill_gc(store, after_s=took_s * number / _KILLS)
        story.step()
        if number % 6 == 0:
            # All that a killed one may have left, at once.
            with hold_gc_lock(store):
                gc(store)
            assert loose(store) == []
            assert git("fsck", "--strict", "--no-dangling", cwd=Path(store.path)) == ""
        assert before <= needed(store, git)
    with hold_gc_lock(store):
        gc(store)
    # How many come too late is the machine's affair.
    assert killed > 0
    assert story.snapshot.record.depth == 9 + _KILLS * 4
    assert [path for path in Path(store.path).rglob("*.lock") if "uwf" not in path.parts] == []


_KILLS = 18


def needed(store: Store, git: Git) -> set[str]:
    told = git("rev-list", "--objects", "--all", cwd=Path(store.path))
    return {line.split()[0] for line in told.splitlines()}


def kill_gc(store: Store, *, after_s: float) -> bool:
    """Run git's gc in its own session, kill all of it, and return whether it had started."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            with hold_gc_lock(store):
                gc(store)
        finally:
            os._exit(0)
    until = time.monotonic() + after_s
    while time.monotonic() < until:
        time.sleep(0.001)
    try:
        os.killpg(pid, 9)
    except (ProcessLookupError, PermissionError):
        os.kill(pid, 9)
    was_killed = os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    wait_for_end(pid)
    return was_killed


def wait_for_end(group: int) -> None:
    """Wait until the last process of a killed group is gone.

    Until its parent has reaped it, which takes a moment on a busy machine, the process in gc.pid
    exists, and git says that a gc is running.
    """
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.002)
