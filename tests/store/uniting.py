"""Writers and uniters that are killed at random, and readers beside.

A writer moves its ref as a step does, some milliseconds after its pack has its name, and then tells
that it did: what was told once is there for ever.
"""

import errno
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from dulwich.object_store import DiskObjectStore
from dulwich.objects import Blob, Commit, ObjectID, Tree
from store.conftest import Git
from store.small_packs import pack_folder

from uwf_git.model.names import Oid
from uwf_git.store.objects.objects import DurableObjects
from uwf_git.store.objects.pack_writer import PackRights, build_entry, write_pack
from uwf_git.store.store import Store, open_store
from uwf_git.store.tidy import remove_stale_packs, unite_packs

_WRITERS = 2

Work = Callable[[str], None]

# git leaves what others are at work on, and says so; and it gives up if a pack that it listed is
# united, having removed nothing.
_HARMLESS = (
    "Unable to create",
    "already running",
    "cannot be accessed",
    "cannot open index for",
    "cannot open pack index",
    "cannot lock",
    "could not find pack",
    "no pack files to index",
    "unable to add recent objects",
)


def commit_of(number: int, parent: ObjectID | None, content: bytes) -> list[Blob | Tree | Commit]:
    """Return a commit after what it needs; the same ones for the same *content*."""
    blob = Blob.from_string(content)
    tree, commit = Tree(), Commit()
    tree[b"file"] = (0o100644, blob.id)
    commit.tree = tree.id
    commit.parents = [parent] if parent else []
    commit.author = commit.committer = b"a <b@c>"
    commit.author_time = commit.commit_time = number
    commit.author_timezone = commit.commit_timezone = 0
    commit.message = b"message\n"
    return [blob, tree, commit]


def write(path: str, number: int, *, held_back: bool) -> None:
    """Write commits, and note each in a file once the ref is there."""
    store = open_store(path)
    name = f"refs/threads/{number}"
    told = os.open(f"{path}/told-{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while True:
        seen = store.refs.find(name)
        content = os.urandom(100).hex().encode()
        objects = commit_of(number, ObjectID(seen.encode()) if seen else None, content)
        entries = [build_entry(obj) for obj in objects]
        new = write_pack(pack_folder(store), entries, PackRights(durable=False), keep=True)
        time.sleep(0.002)
        if held_back:
            time.sleep(0.03)
        to = Oid(objects[-1].id.decode())
        assert store.refs.advance(name, seen=seen, to=to) if seen else store.refs.create(name, to)
        assert new.keep is not None
        new.keep.release()
        os.write(told, f"{to}\n".encode())


def unite(path: str) -> None:
    """Unite and sweep all the time."""
    store = open_store(path)
    while True:
        unite_packs(store)
        remove_stale_packs(store)
        time.sleep(0.001)


def read(path: str) -> None:
    """Read what was told, at random, by objects that stay open and by new ones."""
    chance = random.Random(os.getpid())
    folder = f"{path}/objects"
    ours, theirs = DurableObjects(folder), DiskObjectStore(folder)
    while True:
        oids = told_in(path)
        if not oids:
            continue
        for places in (ours, DurableObjects(folder), theirs):
            try:
                read_commit(places, ObjectID(chance.choice(oids).encode()))
            except OSError as error:
                # dulwich's own store holds all packs open, and nobody unites them during git's gc.
                if places is not theirs or error.errno != errno.EMFILE:
                    raise
                theirs.close()
        time.sleep(0.001)


def read_commit(places: DurableObjects | DiskObjectStore, oid: ObjectID) -> None:
    """Read the commit *oid* and all that it needs."""
    commit = places[oid]
    assert isinstance(commit, Commit)
    tree = places[commit.tree]
    assert isinstance(tree, Tree)
    assert places.get_raw(tree[b"file"][1])[1]


def told_in(path: str) -> list[str]:
    """List the commits that writers told of."""
    files = [Path(f"{path}/told-{number}") for number in range(_WRITERS)]
    # The last line may be under way.
    return [oid for file in files if file.exists() for oid in file.read_text().split("\n")[:-1]]


def begin(work: Callable[[], None], place: str) -> int:
    """Run *work* in a child; what it raises is noted below *place*."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - it is reported to the test
            Path(f"{place}/failed-{os.getpid()}").write_text(repr(error))
        finally:
            os._exit(1)
    return pid


@contextmanager
def at_work(works: list[Callable[[], None]], place: str) -> Iterator[list[int]]:
    """Run all *works* in children until the end."""
    pids = [begin(work, place) for work in works]
    try:
        yield pids
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def run_together(
    store: Store,
    chance: random.Random,
    rounds: Iterable[int],
    *,
    held_back: bool = False,
    beside: Work | None,
) -> None:
    """Run two writers, two uniters and a reader; kill one writer or uniter in each round."""
    path = store.path
    works: list[Callable[[], None]] = [partial(unite, path)] * 2
    works += [partial(write, path, number, held_back=held_back) for number in range(_WRITERS)]
    with at_work([partial(read, path)], path), at_work(works, path) as pids:
        for _round in rounds:
            number = chance.randrange(len(works))
            for _tick in range(chance.randrange(10)):
                time.sleep(0.005)
            if beside is not None:
                beside(path)
            os.kill(pids[number], signal.SIGKILL)
            os.waitpid(pids[number], 0)
            pids[number] = begin(works[number], path)
    failed = [file.read_text() for file in Path(path).glob("failed-*")]
    assert failed == [], failed


def check_whole(store: Store, git: Git) -> None:
    """Check that everything told of is there, and all that the refs reach."""
    told = told_in(store.path)
    assert told
    assert set(told) - set(git("rev-list", "--all", cwd=Path(store.path)).split()) == set()
    assert git("fsck", "--strict", "--no-dangling", cwd=Path(store.path)) == ""


def git_by(*words: str) -> Work:
    def run(path: str) -> None:
        ran = subprocess.run(["git", *words], cwd=path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0 or any(map(ran.stderr.__contains__, _HARMLESS)), ran.stderr

    return run
