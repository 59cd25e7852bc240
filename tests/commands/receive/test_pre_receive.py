import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commands.world import World
from interop.forge import path_of, take_apart

from uwf_git.agents.limited_fork import LimitHit
from uwf_git.commands.receive.receive import check_push
from uwf_git.commands.receive.ref_update import RefUpdate
from uwf_git.model.builtin import TEXT
from uwf_git.store.oid import Oid
from uwf_git.store.store import NotAStore

Git = Callable[..., str]


def test_objects_in_quarantine_are_seen(world: World, tmp_path: Path, git: Git) -> None:
    thread = world.begun()
    git("init", "-q", "--bare", "hub.git", cwd=tmp_path)
    hub = str(tmp_path / "hub.git")
    update = RefUpdate(f"refs/threads/{thread}", None, world.snapshot(thread).commit.oid)
    environ = os.environ | {
        "GIT_OBJECT_DIRECTORY": f"{world.store.path}/objects",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{hub}/objects",
    }

    assert check_push(hub, environ, [update]) == []
    (refusal,) = check_push(hub, os.environ, [update])
    assert "is missing" in refusal.message


def test_check_that_takes_too_long_is_ended(world: World, git: Git) -> None:
    thread = world.begun()
    # A start with a parent would be refused at once: it is not the one that follows a split.
    world.step(thread)
    ref = f"refs/threads/{thread}"
    git("config", "uwf.receiveTimeout", "1", cwd=Path(world.store.path))
    tip = world.snapshot(thread).commit.oid
    forge = take_apart(world.store, tip)
    forge.parents = [tip]
    numbers = b"[" + b"[0,{}]," * 1_000_000 + b"0]"
    document = b'{"type": "%s", "payload": %s, "timestamp": 1}' % (TEXT.encode(), numbers)
    forge.write(path_of("0123456789ABC") + ".json", document)

    with pytest.raises(LimitHit, match="the check of this push took too much time"):
        check_push(world.store.path, os.environ, [RefUpdate(ref, None, Oid(forge.commit()))])


def test_folder_without_a_store_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotAStore):
        check_push(str(tmp_path), os.environ, [])
