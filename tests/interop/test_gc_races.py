"""Steps, starts and ends during packing by git or uwf: nothing is lost, nothing fails."""

import os
import pickle
import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from commands.world import DEMO, Git, make_store, replied
from dulwich.object_store import DiskObjectStore
from dulwich.objects import Commit, ObjectID

from uwf_git.commands.admin import gc_store
from uwf_git.commands.caller import Caller
from uwf_git.commands.start import StartRequest, start_thread
from uwf_git.commands.step.step_thread import StepRequest, step_thread
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.verify.thread import check_thread
from uwf_git.commands.workflow.build import put_workflow
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.objects.objects import DurableObjects, ObjectStore
from uwf_git.store.packing import GcRuns
from uwf_git.store.store import OwnTransitions, Store, create_store, open_store
from uwf_git.store.threads.heads import get_head

_WORKERS = 3
_SECONDS = 2.0
_STEPS_EACH = 6

# git lists the packs once more for an object that it misses: one that is united into another pack
# between listing and opening, both times, is there for the next git. What is lost stays lost.
_OVERTAKEN = "bad object"
# git leaves what others are at work on, and says so; and it wants packs before it indexes them.
_HARMLESS = ("Unable to create", "cannot lock", "no pack files to index")


def told_at_random(turn: Turn) -> Played:
    """Some of it is the same every time, so that objects are there already."""
    text = random.choice(["the same", f"{random.random()}"])
    if turn.role == "writer":
        return replied({"text": text}, text * 20)
    return replied({"ok": turn.snapshot.record.depth >= _STEPS_EACH - 1}, text)


class HeldBack(OwnTransitions):
    """Holds each ref back after its commit was written, for as long as git needs to do harm."""

    def __init__(self, objects: ObjectStore, *, is_kept: bool) -> None:
        super().__init__()
        self._objects, self._is_kept = objects, is_kept

    def note_recorded(self, commit: Oid) -> None:
        """Wait, with or without the `.keep` of its pack."""
        super().note_recorded(commit)
        assert isinstance(self._objects, DurableObjects)
        if not self._is_kept:
            self._objects.release(commit)
        threading.Event().wait(0.03)


Opened = Callable[[str], Store]


def at_once(path: str) -> Store:
    return open_store(path, environ=os.environ)


def held_back(path: str, *, is_kept: bool = True) -> Store:
    store = at_once(path)
    return store._replace(own_transitions=HeldBack(store.objects, is_kept=is_kept))


def drive_threads(
    path: str, number: int, until: float, opened: Opened = at_once
) -> list[tuple[ThreadId, int]]:
    """Start threads and drive them to their ends.

    For every other thread each command opens the store, as a process does; the others keep it
    open, as `uwf run` does.
    """
    caller = Caller(lambda: time.time_ns() // 1_000_000, dict(os.environ), path)
    made: list[tuple[ThreadId, int]] = []
    while time.monotonic() < until:
        thread = ThreadId(f"01J{number:010}{len(made):013}")
        request = StartRequest("demo", f"Do {random.randint(1, 3)}.", ("nobody",))
        store = opened(path)
        start_thread(store, caller, request, thread=thread)
        steps = 0
        while step_thread(store, caller, StepRequest(thread, told_at_random)).role:
            steps += 1
            store = store if len(made) % 2 else opened(path)
        made.append((thread, steps))
    return made


class Worker:
    """A process that drives threads."""

    def __init__(self, path: str, number: int, until: float, opened: Opened = at_once) -> None:
        reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._work(writer, lambda: drive_threads(path, number, until, opened))
        os.close(writer)
        self._reader = reader

    @staticmethod
    def _work(writer: int, work: Callable[[], object]) -> None:
        try:
            try:
                made = work()
            except BaseException as error:  # noqa: BLE001 - it is reported to the test
                made = repr(error)
            with open(writer, "wb") as file:
                pickle.dump(made, file)
        finally:
            os._exit(0)

    def result(self) -> list[tuple[ThreadId, int]]:
        """Return the threads with their numbers of steps."""
        with open(self._reader, "rb") as file:
            made = pickle.load(file)
        os.waitpid(self.pid, 0)
        assert isinstance(made, list), made
        return made


def gc_by(environ: dict[str, str]) -> Callable[[str], None]:
    def gc(path: str) -> None:
        try:
            gc_store(open_store(path), environ)
        except GcRuns as error:
            pytest.fail(str(error))

    return gc


def git_by(*words: str) -> Callable[[str], None]:
    def git(path: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", *words], cwd=path, capture_output=True, text=True, check=False
        )

    def run(path: str) -> None:
        ran = git(path)
        if _OVERTAKEN in ran.stderr:
            ran = git(path)
        assert ran.returncode == 0 or any(map(ran.stderr.__contains__, _HARMLESS)), ran.stderr

    return run


PACKERS = {
    "uwf gc": gc_by(dict(os.environ)),
    "git gc": git_by("gc", "--quiet"),
    "git maintenance": git_by(
        "maintenance",
        "run",
        "--quiet",
        *(f"--task={task}" for task in ("gc", "loose-objects", "incremental-repack", "pack-refs")),
    ),
    "git pack-refs": git_by("pack-refs", "--all", "--prune"),
    "git repack": git_by("repack", "-adkq"),
}

PRUNERS = {
    **PACKERS,
    "git gc --prune=now": git_by("gc", "--quiet", "--prune=now"),
    "git repack -ad": git_by("repack", "-adq"),
    "git repack -Ad": git_by("repack", "-Adq"),
    "git repack --geometric": git_by("repack", "-dq", "--geometric=2"),
    "git repack --cruft": git_by("repack", "-dq", "--cruft", "--cruft-expiration=now"),
    "git prune": git_by("prune", "--expire=now"),
}
"""Also what drops at once what no ref needs."""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a store with a workflow."""
    store = make_store(tmp_path / "store.git")
    caller = Caller(lambda: time.time_ns() // 1_000_000, dict(os.environ), store.path)
    put_workflow(store, caller, DEMO.encode())
    return store.path


@pytest.mark.parametrize("packer", PACKERS.values(), ids=PACKERS.keys())
def test_nothing_is_lost_and_nothing_fails(
    packer: Callable[[str], None], path: str, git: Git
) -> None:
    until = time.monotonic() + _SECONDS
    workers = [Worker(path, number, until) for number in range(_WORKERS)]
    packed = 0
    while time.monotonic() < until:
        packer(path)
        packed += 1
    made = [each for worker in workers for each in worker.result()]
    assert packed >= 1
    assert len(made) >= _WORKERS
    store = open_store(path)
    for thread, steps in made:
        head = get_head(store, thread)
        assert head.archived
        assert steps == _STEPS_EACH
        assert list(check_thread(store, thread, head.commit, archived=True)) == []
    assert store.refs.names("refs/threads/") == []
    assert git("fsck", "--strict", "--no-dangling", cwd=Path(path)) == ""


def check_all(path: str, made: list[tuple[ThreadId, int]]) -> None:
    store = open_store(path)
    for thread, _steps in made:
        head = get_head(store, thread)
        assert list(check_thread(store, thread, head.commit, archived=head.archived)) == []


@pytest.mark.parametrize("packer", PRUNERS.values(), ids=PRUNERS.keys())
def test_nothing_is_lost_while_refs_are_held_back(
    packer: Callable[[str], None], path: str, git: Git
) -> None:
    until = time.monotonic() + _SECONDS
    workers = [Worker(path, number, until, held_back) for number in range(2)]
    while time.monotonic() < until:
        packer(path)
    made = [each for worker in workers for each in worker.result()]
    assert made
    check_all(path, made)
    assert git("fsck", "--strict", "--no-dangling", cwd=Path(path)) == ""
    assert list(Path(path, "objects", "pack").glob("*.keep")) == []


def test_steps_are_lost_where_packs_are_not_kept(path: str) -> None:
    """Without this, the test above would show nothing."""
    until = time.monotonic() + 30
    opened = partial(held_back, is_kept=False)
    workers = [Worker(path, number, until, opened) for number in range(2)]
    try:
        while time.monotonic() < until:
            # Once something is lost, it fails as well.
            subprocess.run(["git", "repack", "-adq"], cwd=path, capture_output=True, check=False)
            look = ["git", "rev-list", "--all", "--objects", "--quiet"]
            if subprocess.run(look, cwd=path, capture_output=True, check=False).returncode != 0:
                return
    finally:
        for worker in workers:
            os.kill(worker.pid, signal.SIGKILL)
            os.waitpid(worker.pid, 0)
    pytest.fail("nothing was lost in half a minute")


def through_an_alternate(objects: str) -> DurableObjects:
    """Return the objects of a store that has none of its own."""
    other = create_store(f"{objects}-other.git").path
    Path(other, "objects/info/alternates").write_text(objects + "\n")
    return DurableObjects(f"{other}/objects")


@pytest.mark.parametrize("reader", [DurableObjects, DiskObjectStore, through_an_alternate])
def test_readers_miss_nothing_while_git_repacks(
    path: str, reader: Callable[[str], DurableObjects | DiskObjectStore]
) -> None:
    until = time.monotonic() + _SECONDS
    worker = Worker(path, 1, until)
    packer = Worker(path, 2, until, held_back)
    objects = reader(f"{path}/objects")
    read = 0
    while time.monotonic() < until:
        git_by("repack", "-adq")(path)
        refs = open_store(path).refs
        for name in refs.names("refs/archive/"):
            oid = ObjectID(str(refs.find(f"refs/archive/{name}")).encode())
            while oid:
                commit = objects[oid]
                assert isinstance(commit, Commit)
                assert objects[commit.tree].id == commit.tree
                oid = commit.parents[0] if commit.parents else ObjectID(b"")
                read += 2
    worker.result()
    packer.result()
    objects.close()
    assert read > 10


def test_pruning_now_between_steps_takes_only_what_no_ref_needs(path: str, git: Git) -> None:
    made = drive_threads(path, 1, time.monotonic() + 0.2)
    git("prune", "--expire=now", cwd=Path(path))
    check_all(path, made)
    assert all(get_head(open_store(path), thread).archived for thread, _steps in made)
    assert git("fsck", "--strict", cwd=Path(path)) == ""
