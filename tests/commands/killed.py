"""Kill a command before each of its changes, and check what must hold after each kill.

Every kill is made in a copy of the same store, at the same path, time and with the same ids, so
that all runs have the same moments. Kills that leave the same files behind are checked once.
"""

import hashlib
import io
import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from commands.world import World
from dulwich.index import read_index
from seal import START_MS
from store.killing import dies_at, moments_of

from uwf_git.commands.verify.history import Finding
from uwf_git.commands.verify.verify import verify
from uwf_git.model.names import ThreadId
from uwf_git.store.objects.pack_writer import remove_dead_keep
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.heads import list_threads
from uwf_git.store.tidy import remove_stale_files, remove_stale_packs

Action = Callable[[World], object]

_TEMPORARY = re.compile(r"\.?tmp_?[^/ ]*|(?<=pack-)[0-9a-f]{40}(?=\.)")
_NUMBERS = re.compile(rb"\d+")
_OBJECT_NAME = 38
_INDEX = re.compile(r"(^|\.)index(\.part)?$")

LATER_MS = START_MS + 1_000_000_000
LONG_AGO_S = START_MS // 1000 - 100_000_000


def kill_everywhere(world: World, action: Action, again: Action, *, spare: int = 0) -> int:
    """Kill *action* at every moment, each time in the same copy of *world*; return how many.

    *again* checks that it has either happened or not, and does it again. So many moments as are
    *spare* may be missing at the end, when another process, which may live on, has a part in it.
    """
    moments = moments_of(partial(action, copy_of(world)))
    checks = _Checks(again)
    for number, moment in enumerate(moments, start=1):
        copy = copy_of(world)
        try:
            assert dies_at(number, partial(action, copy)) or number > len(moments) - spare
            # What another process still works on has no state to compare.
            checks.check(copy, is_last=number == len(moments), is_at_rest=not spare)
        except BaseException as error:
            error.add_note(f"killed before moment {number} of {len(moments)}: {moment}")
            raise
    print(f"{len(moments)} kills, {checks.count} states")  # noqa: T201 - for `pytest -rA`
    return len(moments)


class _Checks:
    """The checks after a kill, and the states of a store that have passed them."""

    def __init__(self, again: Action) -> None:
        self._again = again
        self._git_has_seen: set[str] = set()
        self._is_verified: list[dict[str, bytes]] = []
        self.seen: set[str] = set()
        self.count = 0

    def check(self, copy: World, *, is_last: bool, is_at_rest: bool) -> None:
        """Check what a kill left in *copy*, and after the command was done again."""
        if is_at_rest and not is_last:
            state = digest_of(copy.store.path) + digest_of(str(user_folder(copy.store)))
            if state in self.seen:
                return
            self.seen.add(state)
        self.count += 1
        copy.reopen()
        self._check_with_git(copy)
        self._verify(copy)
        self._again(copy)
        check_swept(copy)
        self._check_with_git(copy)
        self._verify(copy)

    def _check_with_git(self, copy: World) -> None:
        state = digest_of(copy.store.path, only_git=True)
        if state not in self._git_has_seen:
            check_with_git(copy)
            self._git_has_seen.add(state)

    def _verify(self, copy: World) -> None:
        # What the refs reach never changes, and git has just found all of it: while they stay, so
        # does the answer.
        refs = refs_of(copy.store)
        if refs not in self._is_verified:
            assert find_troubles(copy.store) == ()
            self._is_verified.append(refs)


def digest_of(path: str, *, only_git: bool = False) -> str:
    """Return one text for all that lies in the store at *path*, or for what git reads of it.

    What differs from run to run is left out: the rest of a temporary name, the name of a pack, and
    in a lock the number of the process that held it.
    """
    digest = hashlib.sha256()
    told = []
    for folder, folders, names in os.walk(path):
        below = os.path.relpath(folder, path)
        if only_git and below == "." and "uwf" in folders:
            folders.remove("uwf")
        told += [f"{below}/{each}/" for each in folders]
        told += [f"{below}/{each} {_digest_of_file(folder, each)}" for each in names]
    for line in sorted(_TEMPORARY.sub("tmp", each) for each in told):
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def _digest_of_file(folder: str, name: str) -> str:
    if len(name) == _OBJECT_NAME and not _TEMPORARY.search(name):
        # Its name is the digest of its content, which git checks anew for each new size.
        return str(os.stat(f"{folder}/{name}").st_size)
    if os.path.islink(f"{folder}/{name}"):
        return os.readlink(f"{folder}/{name}")
    with open(f"{folder}/{name}", "rb") as file:
        content = file.read()
    if _INDEX.search(name):
        # git writes the times of files into it. What a kill has cut short counts as it is.
        with suppress(Exception):
            entries = read_index(io.BytesIO(content))
            return str([(each.name, each.sha, each.mode, each.flags) for each in entries])
    if ".lock" in name or "locks" in folder or name.endswith(".keep"):
        content = _NUMBERS.sub(b"N", content)
    return hashlib.sha256(content).hexdigest()


def copy_of(world: World) -> World:
    """Return a copy of *world* to do anything with; the next copy takes its place."""
    kept = Path(world.store.path)
    path = kept.parent / "killed.git"
    make_same(kept, path)
    clock = itertools.count(LATER_MS, 1000).__next__
    ids = map("01J001{:020d}".format, itertools.count(1))
    store = open_store(str(path), environ=world.caller.environ)
    shutil.rmtree(user_folder(store), ignore_errors=True)
    if user_folder(world.store).exists():
        shutil.copytree(user_folder(world.store), user_folder(store))
    return World(
        world.place, store, world.caller._replace(now_ms=clock), lambda: ThreadId(next(ids))
    )


def user_folder(store: Store) -> Path:
    """Return the folder of the user's own files about *store*."""
    assert store.trust_file is not None
    return Path(store.trust_file).parent


def make_same(kept: Path, path: Path) -> None:
    """Make *path* hold what *kept* holds, ten times as fast as a new copy."""
    path.mkdir(exist_ok=True)
    for there in path.iterdir():
        twin = kept / there.name
        if not twin.exists():
            shutil.rmtree(there) if there.is_dir() else there.unlink()
    for here in kept.iterdir():
        twin = path / here.name
        if here.is_dir():
            make_same(here, twin)
        elif here.parent.parent.name != "objects":
            shutil.copy2(here, twin)
        elif not twin.exists():
            # An object is never written again.
            os.link(here, twin)


def make_folders(world: World, action: Action) -> None:
    """Make the folders of objects that *action* would make, so that they are no moments."""
    copy = copy_of(world)
    moments_of(partial(action, copy))
    for folder in Path(copy.store.path, "objects").iterdir():
        Path(world.store.path, "objects", folder.name).mkdir(exist_ok=True)


def check_with_git(world: World) -> None:
    """Check that git finds nothing wrong."""
    told = subprocess.run(
        ["git", "fsck", "--strict", "--no-dangling", "--no-progress"],
        cwd=world.store.path,
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in told.stderr.splitlines() if not line.startswith("notice: ")]
    assert (told.returncode, told.stdout, said) == (0, "", [])


def state_of(world: World, thread: ThreadId) -> tuple[str, int]:
    """Return the status of a thread and its number of steps."""
    record = world.snapshot(thread).record
    return record.status, record.depth


def find_troubles(store: Store) -> tuple[Finding, ...]:
    """Check everything, as `uwf verify` does."""
    return verify(store, []).troubles


def check_swept(world: World) -> None:
    """Check that what a kill left behind is removed once it is old, and nothing else."""
    before = refs_of(world.store)
    for path in Path(world.store.path).rglob("*"):
        os.utime(path, (LONG_AGO_S, LONG_AGO_S))
    remove_stale_files(world.store)
    remove_stale_packs(world.store)
    assert list(left_behind(world.store)) == []
    for path in Path(world.store.path, "objects", "pack").glob("*.keep"):
        # Killed before it wrote who it is, it has written no pack either.
        assert remove_dead_keep(str(path)) or not path.with_suffix(".pack").exists()
    archived = {f"refs/threads/{name}" for name in list_threads(world.store, archived=True)}
    assert refs_of(world.store) == {
        name: oid for name, oid in before.items() if name not in archived
    }


def refs_of(store: Store) -> dict[str, bytes]:
    """Return all refs; none of these commands packs them."""
    folder = Path(store.path, "refs")
    names = [name for name in _files(folder) if not name.endswith(".lock")]
    return {f"refs/{name}": Path(folder, name).read_bytes() for name in names}


def left_behind(store: Store) -> Iterator[str]:
    """List the files of a store that nothing needs."""
    active = set(list_threads(store, archived=False))
    for name in _files(Path(store.path)):
        parts = Path(name).parts
        is_local = parts[:2] in {("uwf", "locks"), ("uwf", "run")} or parts[0] == "uwf-workdirs"
        thread = parts[1] if parts[0] == "uwf-workdirs" else parts[2] if is_local else ""
        thread = thread.partition(".")[0]
        if (
            name.endswith(".lock")
            or Path(name).name.startswith((".tmp_", "tmp_"))
            or (parts[:2] == ("uwf", "ref-locks") and not parts[2].startswith("guard-"))
            or (is_local and thread not in {"init", "unite", *active})
        ):
            yield name


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())
