"""The files of a store that no thread leads to; more by chance in test_damaged_stores.py."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commands.world import World
from dulwich.objects import Blob
from store.loose import loose_file, write_loose

from uwf_git.commands.verify.history import check_files
from uwf_git.commands.verify.verify import verify

A = "a" * 40


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_bytes(content)


FILES = {
    "HEAD": (b"ref: refs/threads/x\n", "HEAD names no branch and no commit"),
    "packed-refs": (b"", "packed-refs is empty"),
    "refs/heads/main": (b"", "ref refs/heads/main does not hold an object id"),
    "refs/uwf/remotes/o/threads/x": (A.encode(), f"points at {A}, which is missing"),
    "objects/info/commit-graph": (b"garbage", "objects/info/commit-graph does not end with"),
}


@pytest.mark.parametrize("name", FILES)
def test_file_that_git_rejects_is_reported_if_the_whole_store_is_checked(
    name: str, world: World
) -> None:
    thread = world.begun()
    content, told = FILES[name]

    write(Path(world.store.path, name), content)

    (found,) = verify(world.store, []).troubles
    assert told in found.message
    assert found.hint
    assert verify(world.store, [thread]).troubles == ()


def test_object_that_nothing_needs_is_reported(world: World) -> None:
    blob = Blob.from_string(b"nothing needs it")
    write_loose(world.store, [blob])
    path = loose_file(world.store, blob.id)

    write(path, path.read_bytes() + b"more")

    (found,) = check_files(world.store, ())
    assert "has garbage behind the object" in found.message


def test_what_git_packs_is_right(world: World, git: Callable[..., str]) -> None:
    world.step(world.begun())
    git("gc", "--quiet", cwd=Path(world.store.path))
    world.reopen()
    assert list(check_files(world.store, ())) == []
