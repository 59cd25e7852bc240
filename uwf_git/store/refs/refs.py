"""Read refs from git's files, list them, and move them by compare-and-swap."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress

from uwf_git.errors import StoreDamaged
from uwf_git.store.disk.durable import remove_file, replace_file, sync_directories
from uwf_git.store.disk.file_memory import FileMemory
from uwf_git.store.disk.lockfile import PACKED_REFS, hold_ref_lock, hold_ref_locks, markers
from uwf_git.store.oid import _OID, Oid
from uwf_git.store.refs.packed_refs import (
    PackedRefs,
    change_packed_rows,
    list_packed_refs,
    open_packed_refs,
    read_packed_refs,
    remove_packed_row,
)

# Read refs from git's files, and move them by compare-and-swap.
#
# Not by dulwich: it parses all of packed-refs for each write (0.65 s at 100,000 refs). Source:
# git-update-ref(1), git-pack-refs(1), gitrepository-layout(5).

_MANY = 50
"""From so many refs on it is cheaper to replace packed-refs as a whole than to write each ref."""

_FORCED: FileMemory[None] = FileMemory(64)
"""The folders above refs that this process has forced to the disk."""


def _force(folder: str) -> None:
    sync_directories([folder])


def read_loose(path: str) -> Oid | None:
    with open(path, "rb") as file:
        content = file.read(1000).rstrip()
    return Oid(content.decode()) if _OID.fullmatch(content) else None


def loose_names(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [
                each.name for each in entries if not each.name.endswith(".lock") and each.is_file()
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []


class BadRef(StoreDamaged):
    code = "bad-ref"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"ref {name} does not hold an object id",
            hint=f"delete that file, {name} in the store; `uwf fetch` then takes it over again "
            "from a remote that has it",
            ref=name,
        )


class Refs:
    def __init__(
        self, git_dir: str, *, durable: bool, reached: Callable[[Oid], object] | None = None
    ) -> None:
        """Open the refs; *reached* is called with each commit that a ref has been moved to."""
        self._git_dir = git_dir
        self._durable = durable
        self._reached = reached
        self.has_changed = False
        """Whether a ref was created, moved or deleted through this object."""

    def find(self, name: str) -> Oid | None:
        path = os.path.join(self._git_dir, name)
        # Most look-ups of archived threads find none; asking takes a third of a failed open.
        if os.path.lexists(path):
            with suppress(FileNotFoundError, IsADirectoryError, NotADirectoryError):
                oid = read_loose(path)
                if oid is None:
                    raise BadRef(name)
                return oid
        return self._find_packed(name)

    def names(self, prefix: str) -> list[str]:
        """List the names below *prefix* (which ends in a slash), sorted, without it."""
        loose = set(loose_names(os.path.join(self._git_dir, prefix)))
        packed = self._open_packed().names(prefix)
        # Nearly free: Python's sort detects runs that are in order already.
        return sorted([*packed, *loose.difference(packed)])

    def check_packed(self) -> None:
        """Raise BadPackedRefs if packed-refs has a broken line, so that ``find`` may miss a ref."""
        self._open_packed().check()

    def create(self, name: str, to: Oid) -> bool:
        return self._write(name, None, to)

    def advance(self, name: str, *, seen: Oid, to: Oid) -> bool:
        return self._write(name, seen, to)

    def delete(self, name: str, *, seen: Oid) -> bool:
        """Delete *name* if it points at *seen*; return False and change nothing if it does not."""
        with hold_ref_lock(self._git_dir, name, b"", durable=False), self._packed_locked():
            if self.find(name) != seen:
                return False
            self._remove(name)
        self._note_moved(None)
        return True

    def move(self, name: str, *, seen: Oid, to_name: str, to: Oid) -> bool:
        """Create *to_name* at *to*, then delete *name*, which must be at *seen*; lock both.

        *to_name* is created in packed-refs, which git reads after all loose refs: a git that lists
        the refs meanwhile finds at least one of the two refs, and drops nothing.

        Return False and change nothing if *name* is elsewhere or *to_name* exists. A crash in
        between leaves both refs.
        """
        names = {to_name: b"", name: b""}
        with hold_ref_locks(self._git_dir, names, durable=False), self._packed_locked():
            if self.find(name) != seen or self.find(to_name) is not None:
                return False
            packed = PackedRefs(os.path.join(self._git_dir, PACKED_REFS))
            content = packed.add_row(to_name, to)
            is_packed = packed.find(name) is not None
            self._replace_packed(remove_packed_row(content, name) if is_packed else content)
            self._remove_loose(name)
        self._note_moved(to)
        return True

    def change(
        self, changes: Mapping[str, tuple[Oid | None, Oid | None]], *, at_once: bool = False
    ) -> set[str]:
        """Move each ref from one value to another, None being no ref; return those that moved.

        Many refs, or all *at_once*, go into packed-refs, which is replaced once: so no reader sees
        a new ref missing and an old ref gone. A crash leaves some refs moved.
        """
        packed: set[str] = set()
        alone = set(changes)
        if at_once or len(changes) >= _MANY:
            packed, alone = self._change_packed(changes)
        moved = {name for name in packed if self._is_packed_at(name, changes[name][1])}
        # Those that go are the last.
        for name in sorted(alone, key=lambda each: (changes[each][1] is None, each)):
            seen, to = changes[name]
            if self._write(name, seen, to) if to else seen and self.delete(name, seen=seen):
                moved.add(name)
        return moved

    def _change_packed(
        self, changes: Mapping[str, tuple[Oid | None, Oid | None]]
    ) -> tuple[set[str], set[str]]:
        """Move the refs that are packed or nowhere; return them, and the refs to move alone."""
        rows: dict[str, Oid | None] = {}
        alone: set[str] = set()
        with self._packed_locked():
            for name, (seen, to) in changes.items():
                is_loose = self._may_be_loose(name)
                if is_loose:
                    alone.add(name)
                # Of a loose ref that goes, the older packed value goes with the others.
                if (to is None or not is_loose) and self.find(name) == seen:
                    rows[name] = to
            if rows:
                path = os.path.join(self._git_dir, PACKED_REFS)
                content = read_packed_refs(self._git_dir)
                self._replace_packed(change_packed_rows(path, content, rows))
        return rows.keys() - alone, alone

    def _may_be_loose(self, name: str) -> bool:
        """Check whether *name* has a file, or may get one: another process holds its lock."""
        path = os.path.join(self._git_dir, name)
        # In this order: a process that let go of the lock in between has written the file.
        return os.path.lexists(path + ".lock") or os.path.lexists(path)

    def _is_packed_at(self, name: str, to: Oid | None) -> bool:
        """Return whether *name* is at *to*, as packed-refs says by now, and note that it moved.

        A process that took its lock before packed-refs was replaced may have written its file.
        """
        if self._may_be_loose(name):
            with hold_ref_lock(self._git_dir, name, b"", durable=False):
                if self.find(name) != to:
                    return False
        self._note_moved(to)
        return True

    def _packed_locked(self) -> AbstractContextManager[str]:
        """Lock packed-refs while a ref is removed, lest `git pack-refs` bring it back."""
        return hold_ref_lock(self._git_dir, PACKED_REFS, b"", durable=False)

    def _remove(self, name: str) -> None:
        """Remove *name*; the caller holds its lock and the lock of packed-refs."""
        # The packed row first: with only the loose file gone, an older packed value would show.
        if self._find_packed(name) is not None:
            self._replace_packed(remove_packed_row(read_packed_refs(self._git_dir), name))
        self._remove_loose(name)

    def _remove_loose(self, name: str) -> None:
        remove_file(os.path.join(self._git_dir, name))
        if self._durable:
            self._sync_name(name)

    def _write(self, name: str, seen: Oid | None, to: Oid) -> bool:
        content = to.encode() + b"\n"
        with hold_ref_lock(self._git_dir, name, content, durable=self._durable) as lock:
            if self.find(name) != seen:
                return False
            os.replace(lock, os.path.join(self._git_dir, name))
            if self._durable:
                self._sync_name(name)
        self._note_moved(to)
        return True

    def _note_moved(self, to: Oid | None) -> None:
        self.has_changed = True
        if to is not None and self._reached is not None:
            self._reached(to)

    def _sync_name(self, name: str) -> None:
        """Force to the disk that *name* is there, or gone."""
        folder = os.path.dirname(name)
        sync_directories([os.path.join(self._git_dir, folder)])
        # Its parents too: the process that made them may have been killed before it synced them.
        # Making or removing a name changes the stamp of its folder: a folder whose stamp is as
        # it was when this process forced the folder holds no other names.
        while folder := os.path.dirname(folder):
            _FORCED.read(os.path.join(self._git_dir, folder), _force)

    def _find_packed(self, name: str) -> Oid | None:
        oid = self._open_packed().find(name)
        if oid is None:
            return None
        # git accepts upper case too.
        oid = oid.lower()
        if _OID.fullmatch(oid) is None:
            raise BadRef(name)
        return Oid(oid.decode())

    def _open_packed(self) -> PackedRefs:
        return open_packed_refs(os.path.join(self._git_dir, PACKED_REFS))

    def _replace_packed(self, content: bytes) -> None:
        """Replace packed-refs; the caller holds its lock."""
        replace_file(
            os.path.join(self._git_dir, PACKED_REFS),
            content,
            temporary_in=markers(self._git_dir),
            durable=self._durable,
        )


# List refs with what they point at, reading packed-refs once for all of them.
#
# A loose ref counts before a packed one. A ref whose file holds no object id is left out of
# ``list_refs``, also if an older value of it is packed; ``list_bad_files`` names it. Source:
# gitrepository-layout(5), git-pack-refs(1).


def list_refs(git_dir: str, prefix: str) -> dict[str, Oid]:
    """Return the refs directly below *prefix* (which ends in a slash), by name without it."""
    # Loose before packed: a ref that git packs in between is then in at least one of the two.
    loose = read_loose_refs(git_dir, prefix)
    packed = ((ref.removeprefix(prefix), oid) for ref, oid in list_packed_refs(git_dir, prefix))
    found = {name: oid for name, oid in packed if "/" not in name}
    values: dict[str, Oid | None] = {**found, **loose}
    return {name: oid for name, oid in sorted(values.items()) if oid is not None}


def list_bad_files(git_dir: str, prefix: str) -> list[str]:
    """List the refs directly below *prefix*, in full, whose own file holds no object id."""
    loose = read_loose_refs(git_dir, prefix)
    return sorted(prefix + name for name, oid in loose.items() if oid is None)


def read_loose_refs(git_dir: str, prefix: str) -> dict[str, Oid | None]:
    """Return the loose refs directly below *prefix*, by name without it; None: no object id."""
    folder = os.path.join(git_dir, prefix)
    found: dict[str, Oid | None] = {}
    for name in loose_names(folder):
        try:
            found[name] = read_loose(os.path.join(folder, name))
        except FileNotFoundError:
            continue
    return found
