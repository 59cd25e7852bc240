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
from uwf_git.store.durable import remove, sync_directories, write_temporary
from uwf_git.store.ref_lock import hold_ref_lock

Oid = NewType("Oid", str)
"""A git object id: 40 lower-case hex digits."""

_OID = re.compile(rb"[0-9a-f]{40}")
_PACKED = re.compile(rb"^([0-9a-f]{40}) (refs/[^\n]*)\n", re.MULTILINE)


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
        path = os.path.join(self._git_dir, name)
        with hold_ref_lock(self._git_dir, name, b"", durable=False):
            if self.find(name) != seen:
                return False
            # The packed value first: were the loose file gone alone, an old one would show.
            self._delete_packed(name)
            remove(path)
            if self._durable:
                self._sync_directory(path)
        return True

    def _write(self, name: str, seen: Oid | None, to: Oid) -> bool:
        path = os.path.join(self._git_dir, name)
        content = to.encode() + b"\n"
        with hold_ref_lock(self._git_dir, name, content, durable=self._durable) as lock:
            if self.find(name) != seen:
                return False
            os.replace(lock, path)
            if self._durable:
                self._sync_directory(path)
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
            with open(os.path.join(self._git_dir, "packed-refs"), "rb") as file:
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

    def _delete_packed(self, name: str) -> None:
        if self._find_packed(name) is None:
            return
        with hold_ref_lock(self._git_dir, "packed-refs", b"", durable=False):
            line = re.compile(
                rb"^[0-9a-f]{40} " + re.escape(os.fsencode(name)) + rb"\n(?:\^[0-9a-f]{40}\n)?",
                re.MULTILINE,
            )
            content = line.sub(b"", self._read_packed())
            temporary = write_temporary(
                self._git_dir, content, prefix="packed-refs.tmp_", durable=True
            )
            os.replace(temporary, os.path.join(self._git_dir, "packed-refs"))
            self._sync_directory(os.path.join(self._git_dir, "packed-refs"))
