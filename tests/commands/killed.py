"""Killed commands: a command killed at every moment that it has, and what must hold after each.

Owns: the stores that are killed in, and the laws that hold for all commands.
Knows nothing of: what any one command does.
Always true: every kill happens in a copy of the same store, at the same path, time and with the
same ids, so that the moments found in one run are those of all the others.
"""

import itertools
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from commands.world import World
from seal import START_MS
from store.killing import dies_at, moments_of

from uwf_git.commands.trouble import Trouble
from uwf_git.commands.verify import verify
from uwf_git.model.thread_id import ThreadId
from uwf_git.store.heads import list_threads
from uwf_git.store.litter import sweep_litter
from uwf_git.store.store import Store, open_store

Action = Callable[[World], object]

# Everything is checked as `uwf verify` does after every fifth kill, and by git after each.
_VERIFIED = 5

LATER_MS = START_MS + 1_000_000_000
LONG_AGO_S = START_MS // 1000 - 100_000_000


def kill_everywhere(world: World, action: Action, again: Action, *, spare: int = 0) -> int:
    """Kill *action* at every moment, each time in the same copy of *world*; tell how many.

    *again* checks that it has either happened or not, and does it again. So many moments as are
    *spare* may be missing at the end, when something that takes its time has a part in it.
    """
    moments = moments_of(partial(action, copy_of(world)))
    for number, moment in enumerate(moments, start=1):
        copy = copy_of(world)
        before = refs_of(copy.store)
        try:
            has_died = dies_at(number, partial(action, copy))
            assert has_died or number > len(moments) - spare
            copy.reopen()
            check_with_git(copy)
            # What the refs reach is only ever added to: as long as they stay, so does the answer.
            if refs_of(copy.store) != before:
                assert find_troubles(copy.store) == ()
            again(copy)
            check_swept(copy)
            check_with_git(copy)
            if number % _VERIFIED == 0 or number == len(moments):
                assert find_troubles(copy.store) == ()
        except BaseException as error:
            error.add_note(f"killed before moment {number} of {len(moments)}: {moment}")
            raise
    print(f"{len(moments)} moments to be killed at, all tried")  # noqa: T201 - for `pytest -rA`
    return len(moments)


def copy_of(world: World) -> World:
    """Give the world as it is, to be done with as you like; the next copy takes its place."""
    kept = Path(world.store.path)
    path = kept.parent / "killed.git"
    make_same(kept, path)
    clock = itertools.count(LATER_MS, 1000).__next__
    ids = map("01J001{:020d}".format, itertools.count(1))
    return World(
        world.place,
        open_store(str(path), environ=world.caller.environ),
        world.caller._replace(now_ms=clock),
        lambda: ThreadId(next(ids)),
    )


def make_same(kept: Path, path: Path) -> None:
    """Make *path* hold what *kept* holds; to remove all and copy all takes ten times as long."""
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
            # Nobody writes to an object that is there.
            os.link(here, twin)


def make_folders(world: World, action: Action) -> None:
    """Make the folders of objects that *action* would make; one by one they are made elsewhere."""
    copy = copy_of(world)
    moments_of(partial(action, copy))
    for folder in Path(copy.store.path, "objects").iterdir():
        Path(world.store.path, "objects", folder.name).mkdir(exist_ok=True)


def check_with_git(world: World) -> None:
    """See that git finds nothing wrong."""
    told = subprocess.run(
        ["git", "fsck", "--strict", "--no-dangling", "--no-progress"],
        cwd=world.store.path,
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in told.stderr.splitlines() if not line.startswith("notice: ")]
    assert (told.returncode, told.stdout, said) == (0, "", [])


def find_troubles(store: Store) -> tuple[Trouble, ...]:
    """Check everything, as `uwf verify` does."""
    return verify(store, []).troubles


def check_swept(world: World) -> None:
    """See that what a kill left behind, once it is old, is swept, and nothing else is."""
    before = refs_of(world.store)
    for path in Path(world.store.path).rglob("*"):
        os.utime(path, (LONG_AGO_S, LONG_AGO_S))
    sweep_litter(world.store)
    assert list(left_behind(world.store)) == []
    archived = {f"refs/threads/{name}" for name in list_threads(world.store, archived=True)}
    assert refs_of(world.store) == {
        name: oid for name, oid in before.items() if name not in archived
    }


def refs_of(store: Store) -> dict[str, bytes]:
    """Give all refs, which none of these commands packs."""
    folder = Path(store.path, "refs")
    names = [name for name in _files(folder) if not name.endswith(".lock")]
    return {f"refs/{name}": Path(folder, name).read_bytes() for name in names}


def left_behind(store: Store) -> Iterator[str]:
    """List what lies in the store and is of no use to anyone."""
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
            or (is_local and thread not in {"init", *active})
        ):
            yield name


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())
