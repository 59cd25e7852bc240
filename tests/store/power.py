"""The possible states of a disk after a power failure, at every moment of an action.

Only fsync(2) is relied on: written content is there only if the file was forced since (else the
file is as it was, or empty), and a name is there, or gone, only if its folder was forced since
(else each name by itself is as it was, or as it became).
"""

import itertools
import os
import pickle
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from store.killing import watched

Folder = dict[str, int]


class Seen(NamedTuple):
    """The files and folders below a folder at one moment, by numbers that stay the same."""

    root: int
    folders: dict[int, Folder]
    files: dict[int, bytes]


class Forced(NamedTuple):
    """A file or a folder was forced to the disk."""

    number: int


Event = Seen | Forced


class Image(NamedTuple):
    """One possible state of a disk."""

    root: int
    folders: dict[int, Folder]
    files: dict[int, bytes]

    def find(self, path: str) -> bytes | None:
        """Return the content of a file, or None if it is not there."""
        number: int | None = self.root
        for name in path.split("/"):
            number = self.folders.get(number or 0, {}).get(name)
        return None if number is None else self.files.get(number)

    def list(self, path: str = "") -> Iterator[str]:
        """List the files below a folder."""
        number: int | None = self.root
        for name in filter(None, path.split("/")):
            number = self.folders.get(number or 0, {}).get(name)
        yield from self._below(number, path)

    def _below(self, number: int | None, path: str) -> Iterator[str]:
        for name, child in sorted(self.folders.get(number or 0, {}).items()):
            below = f"{path}/{name}" if path else name
            if child in self.folders:
                yield from self._below(child, below)
            elif child in self.files:
                yield below


def record(
    folder: str, action: Callable[[], object], *, killed_at: int | None = None
) -> list[Event]:
    """Run *action* in a child; return the states of *folder* and the forced files, in order.

    A child that is *killed_at* that look of its, from 1, tells what it did before.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _live(writer, folder, action, killed_at)
    os.close(writer)
    events: list[Event] = []
    with open(reader, "rb") as file, suppress(EOFError):
        while True:
            events.append(pickle.load(file))
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) == (killed_at is not None), "the action ended in another way"
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the action failed"
    return events


def _live(writer: int, folder: str, action: Callable[[], object], killed_at: int | None) -> None:
    known: dict[tuple[int, int, int], bytes] = {}
    fsync = os.fsync
    looks = itertools.count(1)

    def tell(event: Event) -> None:
        whole = memoryview(pickle.dumps(event))
        while whole:
            whole = whole[write(writer, whole) :]

    def see(number: int) -> None:
        tell(look(folder, known))
        if number == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def noted(descriptor: int) -> None:
        # Also before fsync: a process after a kill sees the writes that are not forced yet.
        see(next(looks))
        fsync(descriptor)
        tell(Forced(os.fstat(descriptor).st_ino))

    status = 1
    write = os.write
    try:
        setattr(os, "fsync", noted)  # noqa: B010 - in the child alone, whatever its type
        see(next(looks))
        watched(lambda _number, _what: see(next(looks)), action)
        see(next(looks))
        status = 0
    except BaseException:  # noqa: BLE001 - it is the parent that fails
        traceback.print_exc()
    finally:
        os._exit(status)


def look(folder: str, known: dict[tuple[int, int, int], bytes]) -> Seen:
    """Look at everything below *folder*; files that have not changed are not read again."""
    seen = Seen(os.stat(folder).st_ino, {}, {})
    for path, _folders, files in os.walk(folder):
        here = seen.folders[os.stat(path).st_ino] = {}
        for entry in os.scandir(path):
            here[entry.name] = entry.inode()
        for name in files:
            seen.files[here[name]] = _read(f"{path}/{name}", known)
    return seen


def _read(path: str, known: dict[tuple[int, int, int], bytes]) -> bytes:
    stat = os.stat(path)
    key = (stat.st_ino, stat.st_ctime_ns, stat.st_size)
    if key not in known:
        with open(path, "rb") as file:
            known[key] = file.read()
    return known[key]


def _renumbered(events: Iterable[Event]) -> Iterator[Event]:
    """Return each file a number of its own: an inode that is used anew is another file."""
    numbers: dict[int, int] = {}
    count = itertools.count(1)
    for event in events:
        if isinstance(event, Forced):
            yield Forced(numbers.get(event.number, 0))
            continue
        before = numbers
        numbers = {
            inode: before.get(inode) or next(count) for inode in {*event.folders, *event.files}
        }
        folders = {
            numbers[inode]: {name: numbers[child] for name, child in folder.items()}
            for inode, folder in event.folders.items()
        }
        files = {numbers[inode]: content for inode, content in event.files.items()}
        yield Seen(numbers[event.root], folders, files)


def images_of(events: list[Event]) -> Iterator[list[Image]]:
    """Return what the disk may hold at each moment, the least that it may hold first."""
    numbered = _renumbered(events)
    seen = next(numbered)
    assert isinstance(seen, Seen)
    folders = {number: dict(folder) for number, folder in seen.folders.items()}
    files = dict(seen.files)
    # What each name has stood for since its folder was forced.
    meant: dict[tuple[int, str], list[int | None]] = {}
    for event in numbered:
        if isinstance(event, Forced):
            if event.number in seen.folders:
                folders[event.number] = dict(seen.folders[event.number])
                meant = {key: each for key, each in meant.items() if key[0] != event.number}
            elif event.number in seen.files:
                files[event.number] = seen.files[event.number]
            # Forcing takes possible images away and adds none.
            continue
        seen = event
        _note(seen, folders, meant)
        yield list(_images(seen, folders, files, meant))


def _note(
    seen: Seen, folders: dict[int, Folder], meant: dict[tuple[int, str], list[int | None]]
) -> None:
    for number, folder in seen.folders.items():
        before = folders.setdefault(number, {})
        for name in before.keys() | folder.keys():
            now = folder.get(name)
            values = meant.get((number, name), [before.get(name)])
            if values[-1] != now:
                meant[number, name] = [*values, now]


def _images(
    seen: Seen,
    folders: dict[int, Folder],
    files: dict[int, bytes],
    meant: dict[tuple[int, str], list[int | None]],
) -> Iterator[Image]:
    worst = dict.fromkeys(seen.files, b"") | files
    yield Image(seen.root, folders, worst)
    changes = [(*key, value) for key, values in meant.items() for value in values[1:]]
    for change in changes:
        yield Image(seen.root, _changed(folders, [change]), worst)
    for left_out in changes:
        others = [change for change in changes if change[:2] != left_out[:2]]
        yield Image(seen.root, _changed(folders, others), worst)
    yield Image(seen.root, seen.folders, worst)
    yield Image(seen.root, seen.folders, seen.files)


def _changed(
    folders: dict[int, Folder], changes: list[tuple[int, str, int | None]]
) -> dict[int, Folder]:
    changed = dict(folders)
    for number, name, value in changes:
        folder = dict(changed[number])
        if value is None:
            folder.pop(name, None)
        else:
            folder[name] = value
        changed[number] = folder
    return changed
