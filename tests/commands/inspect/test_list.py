import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands.counting import count_reads
from commands.forging import tip_of
from commands.sharing import Site
from commands.world import DEMO, World
from refusing import refuses
from store.loose import loose_file, loosen

from uwf_git.commands.inspect.list import ListRequest, list_thread_rows
from uwf_git.commands.inspect.show import show_thread
from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store
from uwf_git.store.threads.heads import ACTIVE, get_head
from uwf_git.store.threads.local_files import lock_drive, lock_thread

Git = Callable[..., str]

Damage = Callable[[Path, str, Git], None]


def listed(world: World, **asked: Any) -> list[ThreadId]:
    return [row["thread"] for row in list_thread_rows(world.store, ListRequest(**asked))]


@pytest.fixture
def three(world: World) -> list[ThreadId]:
    """Start two threads of one workflow and one of another, which is killed; oldest first."""
    world.put()
    world.put(DEMO.replace("name: demo", "name: other"))
    threads = [world.start(), world.start(workflow="other"), world.start()]
    world.kill(threads[1])
    return threads


def test_row_reads_one_commit_and_takes_no_lock(
    world: World, three: list[ThreadId], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = count_reads(monkeypatch)

    assert len(listed(world, archived=True)) == 3
    assert len(counted.objects) == len(set(counted.objects)) == len(three)
    assert counted.locks == 0


def test_thread_whose_active_ref_a_crash_left_has_ended(
    world: World, three: list[ThreadId]
) -> None:
    for thread in three:
        tip = get_head(world.store, thread).commit
        world.store.refs.create(ACTIVE + thread, tip)

    assert listed(world) == [three[2], three[0]]
    assert listed(world, archived=True) == three[::-1]


def test_workflow_that_is_nowhere_is_refused_with_the_nearest(
    world: World, three: list[ThreadId]
) -> None:
    with refuses("no-such-workflow", match="no workflow dmo") as caught:
        listed(world, workflow="dmo")
    assert "did you mean demo?" in str(caught.value.hint)
    assert listed(world, workflow="demo", statuses=frozenset({"waiting"})) == []


def test_row_has_the_status_of_a_thread(world: World) -> None:
    thread = world.begun()
    world.step(thread)
    snapshot = world.snapshot(thread)

    assert list_thread_rows(world.store, ListRequest()) == [
        {
            "thread": thread,
            "status": "ready",
            "taskStatus": "pending",
            "workflow": snapshot.record.workflow,
            "workflowName": "demo",
            "depth": 1,
            "head": snapshot.record.node,
            "lastUpdateTime": snapshot.commit.time_s * 1000,
            "said": "writer: What was said.",
        }
    ]


def write_ref(content: bytes) -> Damage:
    def damage(ref: Path, _oid: str, _git: Git) -> None:
        ref.write_bytes(content)

    return damage


def write_object(content: bytes) -> Damage:
    def damage(ref: Path, oid: str, _git: Git) -> None:
        loose(ref, oid).write_bytes(content)

    return damage


def loose(ref: Path, oid: str) -> Path:
    store = open_store(str(ref.parents[2]))
    loosen(store)
    path = loose_file(store, oid)
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
    "forged trailers": replace_by_message(
        "start: x\n\nUwf-Format: 2\nUwf-Thread: 01J00000000000000000000001\nUwf-Event: x\n"
    ),
}


FORMATS = {
    "older format": replace_by_message("start: x\n\nUwf-Format: 1\n"),
    "newer format": replace_by_message("start: x\n\nUwf-Format: 999\n"),
}


@pytest.mark.parametrize("name", [*DAMAGES, *FORMATS])
def test_damaged_or_unreadable_thread_is_one_row_that_says_so(
    name: str, world: World, git: Git
) -> None:
    world.put()
    before, spoiled, after = world.start(), world.start(), world.start()
    ref = Path(world.store.path, "refs", "threads", spoiled)
    {**DAMAGES, **FORMATS}[name](ref, ref.read_text().strip(), git)
    world.reopen()
    status = "unreadable" if name in FORMATS else "damaged"

    rows = list_thread_rows(world.store, ListRequest(archived=True))

    assert [row["thread"] for row in rows] == [after, spoiled, before]
    assert [row["status"] for row in rows] == ["ready", status, "ready"]
    assert rows[1]["error"]
    assert listed(world, statuses=frozenset({status})) == [spoiled]


def test_ref_that_is_no_thread_is_not_listed(world: World) -> None:
    thread = world.begun()
    folder = Path(world.store.path, "refs", "threads")
    content = (folder / thread).read_text()
    for name in ("notes", thread.lower(), f"{thread}.lock", f"{thread}x"):
        (folder / name).write_text(content)
    (folder / "01ARZ3NDEKTSV4RRFFQ69G5FAV").mkdir()

    assert listed(world, archived=True) == [thread]


def test_time_of_the_last_event_is_asked_for(world: World, three: list[ThreadId]) -> None:
    world.step(three[0])
    updated = {row["thread"]: row["lastUpdateTime"] for row in list_thread_rows(
        world.store, ListRequest(archived=True)
    )}  # fmt: skip
    oldest, between, newest = sorted(updated, key=lambda thread: updated[thread])

    def asked(**times: int) -> set[str]:
        return set(listed(world, archived=True, **times))

    assert newest == three[0]
    assert asked(after_ms=updated[newest] + 999) == {newest}
    assert asked(after_ms=updated[newest] + 1000) == set()
    assert asked(before_ms=updated[newest]) == {oldest, between}
    assert asked(after_ms=updated[between], before_ms=updated[newest]) == {between}


def test_damaged_thread_is_of_no_time(world: World) -> None:
    thread = world.begun()
    Path(world.store.path, "refs", "threads", thread).write_bytes(b"")

    assert listed(world) == [thread]
    assert listed(world, before_ms=10**15) == []


def test_thread_at_work_is_running_and_no_longer_ready(world: World) -> None:
    resting, driven, stepped, waiting = (world.begun() for _ in range(4))
    world.step(waiting, command="human")
    with (
        lock_drive(world.store, driven, since_ms=1),
        lock_thread(world.store, stepped, since_ms=1),
        lock_drive(world.store, waiting, since_ms=1),
    ):
        assert listed(world, statuses=frozenset({"running"})) == [stepped, driven]
        assert listed(world, statuses=frozenset({"ready"})) == [resting]
        rows = list_thread_rows(world.store, ListRequest())
    assert [row["status"] for row in rows] == ["waiting", "running", "running", "ready"]
    assert listed(world, statuses=frozenset({"running"})) == []


def test_diverged_thread_is_listed_and_shown_so(sites: tuple[Site, Site, ThreadId]) -> None:
    site, other, thread = sites
    fresh = site.world.start()
    site.step(thread)
    other.step(thread, ok=True)
    other.push()
    assert site.fetch().failure() is not None
    store = open_store(str(site.path), environ=os.environ)
    there = tip_of(store, f"refs/uwf/remotes/origin/threads/{thread}")

    rows = {row["thread"]: row for row in list_thread_rows(store, ListRequest())}

    assert rows[thread]["diverged"] == [{"remote": "origin", "there": there}]
    assert "diverged" not in rows[fresh]
    assert show_thread(store, thread)["diverged"] == rows[thread]["diverged"]
    assert "diverged" not in show_thread(store, fresh)
