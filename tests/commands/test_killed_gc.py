"""`uwf gc` killed at every moment but those of git, which test_killed_git_gc.py kills."""

import itertools
import os
from functools import partial
from pathlib import Path

from commands.killed import LONG_AGO_S, check_with_git, copy_of, find_troubles
from commands.world import Git, World
from store.killing import dies_at

from uwf_git.commands.admin import gc_store
from uwf_git.store.tidy import remove_stale_packs


def test_gc_killed_at_any_moment_can_be_done_again(world: World, git: Git) -> None:
    thread, ended = world.begun(), world.begun()
    world.step(thread)
    while world.step(ended).role is not None:
        pass
    gc_store(world.store, world.caller.environ)
    world.step(thread)
    refs = git("for-each-ref", cwd=Path(world.store.path))
    for moment in itertools.count(1):
        copy = copy_of(world)
        if not dies_at(moment, partial(gc_store, copy.store, copy.caller.environ)):
            break
        assert git("for-each-ref", cwd=Path(copy.store.path)) == refs
        copy.reopen()
        assert copy.step(thread).status == "completed"
        assert gc_store(copy.store, copy.caller.environ).after.loose_objects == 0
        check_with_git(copy)
        if moment % 8 == 0:
            assert list(find_troubles(copy.store)) == []
        assert left_over(copy) == []
    assert moment > 20


def left_over(world: World) -> list[str]:
    """List the files that are stale after a day."""
    assert list(Path(world.store.path, "objects").glob("??/*")) == []
    for path in Path(world.store.path, "objects").rglob("*tmp*"):
        os.utime(path, (LONG_AGO_S, LONG_AGO_S))
    remove_stale_packs(world.store)
    return [
        str(path)
        for path in Path(world.store.path).rglob("*")
        if path.suffix == ".lock" or (path.parent.name == "pack" and "tmp" in path.name)
    ]
