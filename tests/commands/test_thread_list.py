import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands.world import DEMO, World

from uwf_git.commands.thread_kill import kill_thread
from uwf_git.commands.thread_list import ListRequest, list_rows
from uwf_git.model.thread_id import ThreadId

Git = Callable[..., str]

Damage = Callable[[Path, str, Git], None]


def listed(world: World, **asked: Any) -> list[ThreadId]:
    return [row["thread"] for row in list_rows(world.store, ListRequest(**asked))]


@pytest.fixture
def three(world: World) -> list[ThreadId]:
    """Begin two threads of one workflow and one of another, which is killed; oldest first."""
    world.put()
    world.put(DEMO.replace("name: demo", "name: other"))
    threads = [world.start(), world.start(workflow="other"), world.start()]
    kill_thread(world.store, world.caller, threads[1])
    return threads


def test_newest_comes_first(world: World, three: list[ThreadId]) -> None:
    assert listed(world) == [three[2], three[0]]


def test_ended_ones_are_among_them_when_asked_for(world: World, three: list[ThreadId]) -> None:
    assert listed(world, archived=True) == three[::-1]


def test_no_more_than_asked_for(world: World, three: list[ThreadId]) -> None:
    assert listed(world, archived=True, limit=2) == [three[2], three[1]]
    assert listed(world, archived=True, limit=1, workflow="other") == [three[1]]


def test_workflow_is_asked_for_by_name_or_hash(world: World, three: list[ThreadId]) -> None:
    other = world.snapshot(three[1]).record.workflow

    assert listed(world, archived=True, workflow="other") == [three[1]]
    assert listed(world, archived=True, workflow=other) == [three[1]]
    assert listed(world, workflow="nothing") == []


def test_status_is_asked_for(world: World, three: list[ThreadId]) -> None:
    assert listed(world, archived=True, status="killed") == [three[1]]
    assert listed(world, archived=True, status="ready") == [three[2], three[0]]
    assert listed(world, archived=True, status="completed") == []


def test_row_tells_where_a_thread_stands(world: World) -> None:
    thread = world.begun()
    world.step(thread)
    snapshot = world.snapshot(thread)

    assert list_rows(world.store, ListRequest()) == [
        {
            "thread": thread,
            "status": "ready",
            "workflow": snapshot.record.workflow,
            "workflowName": "demo",
            "depth": 1,
            "head": snapshot.record.node,
            "lastUpdateTime": snapshot.commit.time_s * 1000,
            "said": "writer: What was said.",
        }
    ]


def test_archived_thread_with_a_left_over_ref_is_listed_once(
    world: World, three: list[ThreadId], git: Git
) -> None:
    git(
        "update-ref", f"refs/threads/{three[1]}", f"refs/archive/{three[1]}~1",
        cwd=Path(world.store.path),
    )  # fmt: skip

    assert listed(world, archived=True) == three[::-1]
    assert listed(world) == [three[2], three[0]]


def test_empty_store_has_none(world: World) -> None:
    assert listed(world, archived=True) == []


def write_ref(content: bytes) -> Damage:
    def damage(ref: Path, _oid: str, _git: Git) -> None:
        ref.write_bytes(content)

    return damage


def write_object(content: bytes) -> Damage:
    def damage(ref: Path, oid: str, _git: Git) -> None:
        loose(ref, oid).write_bytes(content)

    return damage


def loose(ref: Path, oid: str) -> Path:
    path = ref.parents[2] / "objects" / oid[:2] / oid[2:]
    path.chmod(0o644)
    return path


def remove_object(ref: Path, oid: str, _git: Git) -> None:
    loose(ref, oid).unlink()


def replace_by_message(message: str) -> Damage:
    """Point the ref at a commit of the same tree with another message."""

    def damage(ref: Path, oid: str, git: Git) -> None:
        made = git("commit-tree", f"{oid}^{{tree}}", cwd=ref.parents[2], stdin=message)
        ref.write_text(made)

    return damage


def point_at(revision: str) -> Damage:
    def damage(ref: Path, oid: str, git: Git) -> None:
        ref.write_text(git("rev-parse", oid + revision, cwd=ref.parents[2]))

    return damage


DAMAGES: dict[str, Damage] = {
    "empty ref": write_ref(b""),
    "ref of garbage": write_ref(b"\xff\x00" * 40),
    "short ref": write_ref(b"abc\n"),
    "symbolic ref": write_ref(b"ref: refs/heads/main\n"),
    "ref to nothing": write_ref(b"0123456789" * 4 + b"\n"),
    "commit gone": remove_object,
    "empty object": write_object(b""),
    "object of garbage": write_object(b"garbage"),
    "object cut short": write_object(zlib.compress(b"commit 400\0tree ")[:-3]),
    "object of another kind": write_object(zlib.compress(b"blob 1\0x")),
    "commit without lines": write_object(zlib.compress(b"commit 3\0x\ny")),
    "ref to a tree": point_at("^{tree}"),
    "ref to a blob": point_at(":now.json"),
    "no trailers": replace_by_message("hello\n"),
    "newer format": replace_by_message("start: x\n\nUwf-Format: 999\n"),
    "forged trailers": replace_by_message(
        "start: x\n\nUwf-Format: 1\nUwf-Thread: 01J00000000000000000000001\nUwf-Event: x\n"
    ),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_damaged_thread_is_one_row_that_says_so(damage: Damage, world: World, git: Git) -> None:
    world.put()
    before, spoiled, after = world.start(), world.start(), world.start()
    ref = Path(world.store.path, "refs", "threads", spoiled)
    damage(ref, ref.read_text().strip(), git)
    world.reopen()

    rows = list_rows(world.store, ListRequest(archived=True))

    assert [row["thread"] for row in rows] == [after, spoiled, before]
    assert [row["status"] for row in rows] == ["ready", "damaged", "ready"]
    assert rows[1]["error"]
    assert listed(world, status="damaged") == [spoiled]


def test_what_is_no_thread_is_not_listed(world: World) -> None:
    thread = world.begun()
    folder = Path(world.store.path, "refs", "threads")
    content = (folder / thread).read_text()
    for name in ("notes", thread.lower(), f"{thread}.lock", f"{thread}x"):
        (folder / name).write_text(content)
    (folder / "01ARZ3NDEKTSV4RRFFQ69G5FAV").mkdir()

    assert listed(world, archived=True) == [thread]
