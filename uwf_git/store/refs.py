"""Refs: names that point at commits, in git's files.

Owns: reading loose and packed refs, and moving one by compare-and-swap.
Knows nothing of: threads, workflows, commits.
Always true: a ref changes only from the value the caller has seen; nothing is read that the
answer does not need (dulwich parses all of packed-refs for each write: 0.65 s at 100,000).
Source: git-update-ref(1), git-pack-refs(1), gitrepository-layout(5).
"""

import os
import re
from collections.abc import Iterator
from typing import NewType, Protocol

from uwf_git.errors import StoreDamaged
from uwf_git.store.durable import remove, replace_file, sync_directories
from uwf_git.store.ref_lock import PACKED_REFS, hold_ref_lock, hold_ref_locks, markers

Oid = NewType("Oid", str)
"""A git object id: 40 lower-case hex digits."""

_OID = re.compile(rb"[0-9a-f]{40}")
_PACKED = re.compile(rb"^([0-9a-f]{40}) (refs/[^\n]*)\n", re.MULTILINE)


def is_oid(text: str) -> bool:
    """Tell whether *text* is a git object id in full."""
    return _OID.fullmatch(os.fsencode(text)) is not None


class BadRef(StoreDamaged):
    """A ref file does not hold an object id."""

    code = "bad-ref"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"ref {name} does not hold an object id",
            hint="see `git fsck` and, if you have pushed it somewhere, `git fetch` it again",
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
        """
        try:
            with open(os.path.join(self._git_dir, name), "rb") as file:
                content = file.read(1000)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return self._find_packed(name)
        oid = content.rstrip()
        if _OID.fullmatch(oid) is None:
            raise BadRef(name)
        return Oid(oid.decode())

    def names(self, prefix: str) -> list[str]:
        """List the names below *prefix* (which ends in a slash), sorted, prefix left off."""
        found = set(self._loose_names(prefix))
        found.update(name for name, _oid in self._packed(prefix))
        return sorted(found)

    def create(self, name: str, to: Oid) -> bool:
        """Make *name* point at *to*; change nothing and say False if it exists."""
        return self._write(name, None, to)

    def advance(self, name: str, *, seen: Oid, to: Oid) -> bool:
        """Move *name* from *seen* to *to*; change nothing and say False if it is elsewhere."""
        return self._write(name, seen, to)

    def delete(self, name: str, *, seen: Oid) -> bool:
        """Remove *name* if it points at *seen*; change nothing and say False if it does not."""
        with hold_ref_lock(self._git_dir, name, b"", durable=False):
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
        with hold_ref_locks(self._git_dir, contents, durable=self._durable) as locks:
            if self.find(name) != seen or self.find(to_name) is not None:
                return False
            self._put(to_name, locks[0])
            self._remove(name)
        return True

    def _remove(self, name: str) -> None:
        """Remove *name*, whose lock is held."""
        # Locked until the loose file is gone, as git does: a `git pack-refs` in between would
        # pack the value, and with the loose file gone the ref would be back.
        with hold_ref_lock(self._git_dir, PACKED_REFS, b"", durable=False):
            # The packed value first: were the loose file gone alone, an old one would show.
            if self._find_packed(name) is not None:
                self._rewrite_packed_without(name)
            path = os.path.join(self._git_dir, name)
            remove(path)
            if self._durable:
                self._sync_directory(path)

    def _put(self, name: str, lock: str) -> None:
        """Rename *lock* over the file of *name*."""
        path = os.path.join(self._git_dir, name)
        os.replace(lock, path)
        if self._durable:
            self._sync_directory(path)

    def _write(self, name: str, seen: Oid | None, to: Oid) -> bool:
        content = to.encode() + b"\n"
        with hold_ref_lock(self._git_dir, name, content, durable=self._durable) as lock:
            if self.find(name) != seen:
                return False
            self._put(name, lock)
        return True

    @staticmethod
    def _sync_directory(path: str) -> None:
        try:
            sync_directories([os.path.dirname(path)])
        except FileNotFoundError:
            # Packed and swept away by git in this very moment, which is durable as well.
            return

    def _loose_names(self, prefix: str) -> Iterator[str]:
        try:
            with os.scandir(os.path.join(self._git_dir, prefix)) as entries:
                for entry in entries:
                    if not entry.name.endswith(".lock") and entry.is_file():
                        yield entry.name
        except FileNotFoundError:
            return

    def _read_packed(self) -> bytes:
        try:
            with open(os.path.join(self._git_dir, PACKED_REFS), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return b""

    def _find_packed(self, name: str) -> Oid | None:
        content = self._read_packed()
        # One search for one name; parsing every line would cost a step at 100,000 threads.
        end = content.find(b" " + os.fsencode(name) + b"\n")
        if end < 0:
            return None
        oid = content[max(end - 40, 0) : end]
        if _OID.fullmatch(oid) is None:
            raise BadRef(name)
        return Oid(oid.decode())

    def _packed(self, prefix: str) -> Iterator[tuple[str, Oid]]:
        start = os.fsencode(prefix)
        for match in _PACKED.finditer(self._read_packed()):
            if match[2].startswith(start):
                yield os.fsdecode(match[2][len(start) :]), Oid(match[1].decode())

    def _rewrite_packed_without(self, name: str) -> None:
        line = re.compile(
            rb"^[0-9a-f]{40} " + re.escape(os.fsencode(name)) + rb"\n(?:\^[0-9a-f]{40}\n)?",
            re.MULTILINE,
        )
        content = line.sub(b"", self._read_packed())
        replace_file(
            os.path.join(self._git_dir, PACKED_REFS), content, temporary_in=markers(self._git_dir)
        )
