"""Refs: names that point at commits, in git's files.

Owns: reading loose and packed refs, and moving one by compare-and-swap.
Knows nothing of: threads, workflows, commits.
Always true: a ref changes only from the value the caller has seen; nothing is read that the
answer does not need (dulwich parses all of packed-refs for each write: 0.65 s at 100,000).
Source: git-update-ref(1), git-pack-refs(1), gitrepository-layout(5).
"""

import os
import re
from contextlib import AbstractContextManager
from typing import NewType, Protocol

from uwf_git.errors import StoreDamaged
from uwf_git.store.durable import remove, replace_file, sync_directories
from uwf_git.store.packed_refs import PackedRefs, read_packed_refs
from uwf_git.store.ref_lock import PACKED_REFS, hold_ref_lock, hold_ref_locks, markers

Oid = NewType("Oid", str)
"""A git object id: 40 lower-case hex digits."""

_OID = re.compile(rb"[0-9a-f]{40}")


def is_oid(text: str) -> bool:
    """Tell whether *text* is a git object id in full."""
    return _OID.fullmatch(os.fsencode(text)) is not None


def read_loose(path: str) -> Oid | None:
    """Read the ref that has the file at *path*; None if that holds no object id.

    Raises:
        OSError: there is no such file, or no reading it.
    """
    with open(path, "rb") as file:
        content = file.read(1000).rstrip()
    return Oid(content.decode()) if _OID.fullmatch(content) else None


def loose_names(folder: str) -> list[str]:
    """List the refs that have a file of their own in *folder*, in no order."""
    try:
        with os.scandir(folder) as entries:
            return [
                each.name for each in entries if not each.name.endswith(".lock") and each.is_file()
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []


class BadRef(StoreDamaged):
    """A ref file does not hold an object id."""

    code = "bad-ref"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"ref {name} does not hold an object id",
            hint=f"delete that file, {name} in the store; `uwf fetch` then takes it over again "
            "from a remote that has it",
            ref=name,
        )


class Refs(Protocol):
    """What the store needs of refs; on the disk here, in memory for tests (memory.py)."""

    def find(self, name: str) -> Oid | None:
        """Give what *name* points at, or None if there is no such ref."""

    def names(self, prefix: str) -> list[str]:
        """List the names below *prefix* (which ends in a slash), sorted, prefix left off."""

    def create(self, name: str, to: Oid) -> bool:
        """Make *name* point at *to*; change nothing and say False if it exists."""

    def advance(self, name: str, *, seen: Oid, to: Oid) -> bool:
        """Move *name* from *seen* to *to*; change nothing and say False if it is elsewhere."""

    def delete(self, name: str, *, seen: Oid) -> bool:
        """Remove *name* if it points at *seen*; change nothing and say False if it does not."""

    def move(self, name: str, *, seen: Oid, to_name: str, to: Oid) -> bool:
        """Put *to_name*, at *to*, in the place of *name*, which was at *seen*.

        Nobody can move *name* in between. Change nothing and say False if it is elsewhere, or if
        *to_name* exists. The new name comes first: a crash in between leaves both.
        """


class RefFiles:
    """The refs of a git directory."""

    def __init__(self, git_dir: str, *, durable: bool) -> None:
        self._git_dir = git_dir
        self._durable = durable

    def find(self, name: str) -> Oid | None:
        """Give what *name* points at, or None if there is no such ref.

        Raises:
            BadRef: the file holds something else than an object id.
            BadPackedRefs: git could not read packed-refs either.
        """
        try:
            oid = read_loose(os.path.join(self._git_dir, name))
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return self._find_packed(name)
        if oid is None:
            raise BadRef(name)
        return oid

    def names(self, prefix: str) -> list[str]:
        """List the names below *prefix* (which ends in a slash), sorted, prefix left off."""
        loose = set(loose_names(os.path.join(self._git_dir, prefix)))
        packed = self._open_packed().names(prefix)
        # Each run of names that is in order already costs next to nothing to sort.
        return sorted([*packed, *loose.difference(packed)])

    def create(self, name: str, to: Oid) -> bool:
        """Make *name* point at *to*; change nothing and say False if it exists."""
        return self._write(name, None, to)

    def advance(self, name: str, *, seen: Oid, to: Oid) -> bool:
        """Move *name* from *seen* to *to*; change nothing and say False if it is elsewhere."""
        return self._write(name, seen, to)

    def delete(self, name: str, *, seen: Oid) -> bool:
        """Remove *name* if it points at *seen*; change nothing and say False if it does not."""
        with hold_ref_lock(self._git_dir, name, b"", durable=False), self._packed_locked():
            if self.find(name) != seen:
                return False
            self._remove(name)
        return True

    def move(self, name: str, *, seen: Oid, to_name: str, to: Oid) -> bool:
        """Put *to_name*, at *to*, in the place of *name*, which was at *seen*.

        Nobody can move *name* in between. Change nothing and say False if it is elsewhere, or if
        *to_name* exists. The new name comes first: a crash in between leaves both.
        """
        contents = {to_name: to.encode() + b"\n", name: b""}
        with (
            hold_ref_locks(self._git_dir, contents, durable=self._durable) as locks,
            self._packed_locked(),
        ):
            if self.find(name) != seen or self.find(to_name) is not None:
                return False
            self._put(to_name, locks[0])
            self._remove(name)
        return True

    def _packed_locked(self) -> AbstractContextManager[str]:
        """Lock packed-refs, for as long as a ref is removed, as git does.

        A `git pack-refs` in between would pack the value, and with the loose file gone the ref
        would be back.
        """
        return hold_ref_lock(self._git_dir, PACKED_REFS, b"", durable=False)

    def _remove(self, name: str) -> None:
        """Remove *name*; its lock and that of packed-refs are held."""
        # The packed value first: were the loose file gone alone, an old one would show.
        if self._find_packed(name) is not None:
            self._rewrite_packed_without(name)
        remove(os.path.join(self._git_dir, name))
        if self._durable:
            self._sync_name(name)

    def _put(self, name: str, lock: str) -> None:
        """Rename *lock* over the file of *name*."""
        os.replace(lock, os.path.join(self._git_dir, name))
        if self._durable:
            self._sync_name(name)

    def _write(self, name: str, seen: Oid | None, to: Oid) -> bool:
        content = to.encode() + b"\n"
        with hold_ref_lock(self._git_dir, name, content, durable=self._durable) as lock:
            if self.find(name) != seen:
                return False
            self._put(name, lock)
        return True

    def _sync_name(self, name: str) -> None:
        """Put it on the disk that *name* is there, or gone."""
        folders = []
        folder = os.path.dirname(name)
        # Those above as well: who made them may have been killed before they were on the disk.
        while folder:
            folders.append(os.path.join(self._git_dir, folder))
            folder = os.path.dirname(folder)
        sync_directories(folders)

    def _find_packed(self, name: str) -> Oid | None:
        oid = self._open_packed().find(name)
        if oid is None:
            return None
        # git takes capitals as well.
        oid = oid.lower()
        if _OID.fullmatch(oid) is None:
            raise BadRef(name)
        return Oid(oid.decode())

    def _open_packed(self) -> PackedRefs:
        return PackedRefs(os.path.join(self._git_dir, PACKED_REFS))

    def _rewrite_packed_without(self, name: str) -> None:
        line = re.compile(
            rb"^[0-9a-f]{40} " + re.escape(os.fsencode(name)) + rb"\n(?:\^[0-9a-f]{40}\n)?",
            re.MULTILINE,
        )
        content = line.sub(b"", read_packed_refs(os.path.join(self._git_dir, PACKED_REFS)))
        replace_file(
            os.path.join(self._git_dir, PACKED_REFS),
            content,
            temporary_in=markers(self._git_dir),
            durable=self._durable,
        )
