"""Read refs from git's files, list them, and move them by compare-and-swap."""

import mmap
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from itertools import pairwise
from typing import NamedTuple

from dulwich.refs import Ref, check_ref_format

from uwf_git.errors import StoreDamaged
from uwf_git.model.names import _OID, Oid
from uwf_git.model.text import quote_path
from uwf_git.store.durable import (
    FileMemory,
    is_settled,
    list_entries,
    read_if_there,
    read_stamp,
    remove_file,
    replace_file,
    sync_directories,
)
from uwf_git.store.locks import PACKED_REFS, hold_ref_lock, hold_ref_locks, markers

# Read packed-refs: find a name, list the names below a prefix, read whole rows.
#
# In a file whose header says that it is sorted, as git's does, a look-up is a binary search over
# the same lines that git looks at: both give the same answer even if the file is not sorted.
# Source: gitrepository-layout(5), "packed-refs"; git's refs/packed-backend.c.

PACKED_HEADER = b"# pack-refs with: peeled fully-peeled sorted \n"
_ANY_HEADER = b"# pack-refs with:"
_OID_LENGTH = 40
_SHORTEST_LINE = _OID_LENGTH + len(" r\n")

# Rows that git can read, as many as follow one another; possessive, since there may be 100,000.
_ROWS = re.compile(rb"(?:[0-9a-fA-F]{40}[ \t\r][^\n]++\n(?:\^[0-9a-fA-F]{40}\n)?+)*+")

# A look-up takes as long as reading some twenty rows one after the other.
_ROWS_A_LOOKUP = 20
_SHORTEST_ROW = 70

_LARGEST_READ = 512 * 1024

# The characters that a ref name may have (git-check-ref-format); git lists no line with others.
_NAME = r"([^\x00-\x20\x7f~^:?*\[\\]+)"


PACKED_HINT = (
    "`git for-each-ref` says what git makes of it; copy the file, then remove or mend that line: "
    "each row is an object id, a space, a name"
)


class BadPackedRefs(StoreDamaged):
    code = "bad-packed-refs"

    def __init__(self, path: str, problem: str) -> None:
        self.problem = problem
        super().__init__(f"{path} {problem}", hint=PACKED_HINT, path=path)


class PackedRow(NamedTuple):
    oid: bytes
    name: bytes
    peeled: bytes
    """The object that a tag points at; b"" if the row does not say."""

    def as_line(self) -> bytes:
        tag = b"^%s\n" % self.peeled if self.peeled else b""
        return b"%s %s\n%s" % (self.oid, self.name, tag)


def read_packed_refs(git_dir: str) -> bytes:
    return read_if_there(os.path.join(git_dir, PACKED_REFS))


def read_header(content: bytes) -> bytes:
    return content[: content.find(b"\n") + 1] if content.startswith(b"#") else b""


def list_packed_refs(git_dir: str, *prefixes: str) -> Iterator[tuple[str, Oid]]:
    """Yield the full name and object id of each packed ref below one of *prefixes*, in file order.

    Each prefix ends in a slash.
    """
    content = read_packed_refs(git_dir)
    _check_rows(os.path.join(git_dir, PACKED_REFS), content, len(read_header(content)))
    below = b"|".join(re.escape(os.fsencode(prefix)) for prefix in prefixes)
    for oid, name, _peeled in _row_pattern(b"(?:" + below + rb")[^\n]+").findall(content):
        yield os.fsdecode(name), Oid(oid.decode().lower())


def _check_rows(path: str, content: bytes | mmap.mmap, start: int) -> None:
    """Raise BadPackedRefs if *content* behind *start* has a bad line: a search could miss rows."""
    good = _ROWS.match(content, start)
    if good is not None and good.end() < len(content):
        raise _bad_line(path, content[good.end() :])


def _bad_line(path: str, rest: bytes) -> BadPackedRefs:
    line = rest.split(b"\n", 1)[0]
    return BadPackedRefs(path, f"has a line that names no ref: {line[:60]!r}")


def parse_packed_refs(path: str, content: bytes) -> Iterator[PackedRow]:
    row = _row_pattern(rb"refs/[^\n]+")
    at = len(read_header(content))
    while at < len(content):
        match = row.match(content, at)
        if match is None:
            raise _bad_line(path, content[at:])
        yield PackedRow(*match.groups(default=b""))
        at = match.end()


def remove_packed_row(content: bytes, name: str) -> bytes:
    return _row_pattern(re.escape(os.fsencode(name))).sub(b"", content)


def change_packed_rows(path: str, content: bytes, changes: Mapping[str, Oid | None]) -> bytes:
    """Return *content*, of packed-refs at *path*, with *changes*; None removes a row."""
    header = read_header(content) if content else PACKED_HEADER
    rows = {row.name: row for row in parse_packed_refs(path, content)}
    for name, oid in changes.items():
        raw = os.fsencode(name)
        rows.pop(raw, None)
        if oid is not None:
            rows[raw] = PackedRow(oid.encode(), raw, b"")
    ordered = sorted(rows) if b" sorted" in header else rows
    return header + b"".join(rows[raw].as_line() for raw in ordered)


def _row_pattern(name: bytes) -> re.Pattern[bytes]:
    oid = rb"([0-9a-fA-F]{40})"
    return re.compile(
        rb"^" + oid + rb"[ \t\r](" + name + rb")\n(?:\^" + oid + rb"\n)?", re.MULTILINE
    )


class PackedRefs:
    """A packed-refs file as it was when it was opened; a missing file is empty."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._content = _map(path)
        self._start = 0
        self._is_sorted = False
        self._asked = 0
        self._rows: dict[bytes, bytes] | None = None
        if self._content[:1] == b"#":
            self._start = self._content.find(b"\n") + 1
            header = self._content[: self._start]
            if not header.startswith(_ANY_HEADER):
                raise BadPackedRefs(path, f"has no header that git would write: {header[:60]!r}")
            self._is_sorted = b"sorted" in header[len(_ANY_HEADER) : -1].split(b" ")
        self._end = len(self._content)
        if self._start < self._end:
            last = self._begin_of_line(self._start, self._end - 1)
            if self._content[self._end - 1 :] != b"\n" or self._end - last < _SHORTEST_LINE:
                raise BadPackedRefs(path, f"is cut short: {self._content[last:][:60]!r}")

    def find(self, name: str) -> bytes | None:
        """Return the 40 bytes before *name*, normally an object id; None if it is not there."""
        wanted = os.fsencode(name)
        if self._is_sorted:
            if self._rows is None and self._is_asked_often():
                self._rows = self._index_rows()
            if self._rows:
                return self._rows.get(wanted)
            at, is_there = self._bisect(wanted)
            return self._content[at : at + _OID_LENGTH] if is_there else None
        end = self._content.find(wanted + b"\n", self._start)
        while end >= 0:
            at = self._content.rfind(b"\n", self._start, end) + 1 or self._start
            if end - at == _OID_LENGTH + 1:
                return self._content[at : at + _OID_LENGTH]
            end = self._content.find(wanted + b"\n", end + 1)
        return None

    def _is_asked_often(self) -> bool:
        """Tell, at each look-up, whether reading all rows at once has paid by now."""
        self._asked += 1
        return self._asked * _ROWS_A_LOOKUP * _SHORTEST_ROW > self._end - self._start

    def _index_rows(self) -> dict[bytes, bytes]:
        """Return all rows by name; nothing unless a search finds the rows in the order of names."""
        whole = _ROWS.match(self._content, self._start)
        if whole is None or whole.end() < self._end:
            # git finds what its search happens upon.
            return {}
        rows = _row_pattern(rb"[^\n]+").findall(self._content, self._start)
        names = [name for _oid, name, _peeled in rows]
        in_order = all(name < later for name, later in pairwise(names))
        return {name: oid for oid, name, _peeled in rows} if in_order else {}

    def add_row(self, name: str, oid: Oid) -> bytes:
        row = oid.encode() + b" " + os.fsencode(name) + b"\n"
        if not self._content:
            return PACKED_HEADER + row
        at = self._bisect(os.fsencode(name))[0] if self._is_sorted else self._end
        return self._content[:at] + row + self._content[at:]

    def names(self, prefix: str) -> list[str]:
        wanted = os.fsencode(prefix)
        start, end = self._start, self._end
        if self._is_sorted:
            start, _there = self._bisect(wanted)
            # "0" is the next byte after "/".
            end, _there = self._bisect(wanted[:-1] + b"0")
        self.check()
        line = re.compile(f"^[^#^\n].{{39}}[ \t\r]{re.escape(prefix)}{_NAME}\n", re.MULTILINE)
        return line.findall(os.fsdecode(self._content[start:end]))

    def check(self) -> None:
        _check_rows(self._path, self._content, self._start)

    def _bisect(self, wanted: bytes) -> tuple[int, bool]:
        """Return where the row of *wanted* begins, or would begin, and whether it is there."""
        low, high = self._start, self._end
        while low < high:
            middle = (low + high) // 2
            at = self._begin_of_line(low, middle)
            name_at = at + _OID_LENGTH + 1
            name = self._content[name_at : self._content.find(b"\n", name_at)]
            if name == wanted:
                return at, True
            if name < wanted:
                low = self._end_of_line(middle, high)
            else:
                high = at
        return low, False

    def _begin_of_line(self, least: int, at: int) -> int:
        """Return where the row around *at* begins; a `^` line belongs to the row before it."""
        while True:
            at = max(self._content.rfind(b"\n", least, at) + 1, least)
            if at == least or self._content[at : at + 1] != b"^":
                return at
            at -= 1

    def _end_of_line(self, at: int, most: int) -> int:
        while True:
            at = self._content.find(b"\n", at) + 1
            if at == most or self._content[at : at + 1] != b"^":
                return at


# A mapping costs no memory of its own: the pages are those of the file.
_OPENED: FileMemory[PackedRefs] = FileMemory(8, largest=2**62)


def _map(path: str) -> bytes | mmap.mmap:
    """Read the file, or map it if large (git replaces it whole); a map keeps the disk mounted."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size <= _LARGEST_READ:
                return file.read()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (FileNotFoundError, ValueError):
        # ValueError: the file is empty.
        return b""


def stamp_packed(git_dir: str) -> str:
    """Return a text that changes whenever packed-refs is replaced; "" if there is no such file."""
    now_ns, stamp = time.time_ns(), read_stamp(os.path.join(git_dir, PACKED_REFS))
    # The next file may have the inode and the size of the last but one.
    moment = () if is_settled(stamp, now_ns=now_ns) else (now_ns,)
    return ":".join(map(str, (*(stamp or ()), *moment)))


# Read refs from git's files, and move them by compare-and-swap.
#
# Not by dulwich: it parses all of packed-refs for each write (0.65 s at 100,000 refs). Source:
# git-update-ref(1), git-pack-refs(1), gitrepository-layout(5).

_MANY = 50
"""From so many refs on it is cheaper to replace packed-refs as a whole than to write each ref."""

_FORCED: FileMemory[None] = FileMemory(64)
"""The folders above refs that this process has forced to the disk."""


def read_loose(path: str) -> Oid | None:
    with open(path, "rb") as file:
        content = file.read(1000).rstrip()
    return Oid(content.decode()) if _OID.fullmatch(content) else None


def loose_names(folder: str) -> list[str]:
    found = (each for each in list_entries(folder) if not each.name.endswith(".lock"))
    return [each.name for each in found if each.is_file()]


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
        self._packed_path = os.path.join(git_dir, PACKED_REFS)
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
        return self.advance(name, seen=None, to=to)

    def advance(self, name: str, *, seen: Oid | None, to: Oid) -> bool:
        """Move *name* from *seen* (None: no ref) to *to*; return False if it is elsewhere."""
        content = to.encode() + b"\n"
        with hold_ref_lock(self._git_dir, name, content, durable=self._durable) as lock:
            if self.find(name) != seen:
                return False
            os.replace(lock, os.path.join(self._git_dir, name))
            if self._durable:
                self._sync_name(name)
        self._note_moved(to)
        return True

    def delete(self, name: str, *, seen: Oid) -> bool:
        """Delete *name* if it points at *seen*; return False and change nothing if it does not."""
        with hold_ref_lock(self._git_dir, name, b"", durable=False), self._packed_locked():
            if self.find(name) != seen:
                return False
            # The packed row first: with only the loose file gone, an older packed value would show.
            if self._find_packed(name) is not None:
                self._replace_packed(remove_packed_row(read_packed_refs(self._git_dir), name))
            self._remove_loose(name)
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
            packed = PackedRefs(self._packed_path)
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
            advances = to is not None and self.advance(name, seen=seen, to=to)
            if advances or (to is None and seen and self.delete(name, seen=seen)):
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
                content = read_packed_refs(self._git_dir)
                self._replace_packed(change_packed_rows(self._packed_path, content, rows))
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

    def _remove_loose(self, name: str) -> None:
        remove_file(os.path.join(self._git_dir, name))
        if self._durable:
            self._sync_name(name)

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
            _FORCED.read(os.path.join(self._git_dir, folder), lambda path: sync_directories([path]))

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
        # Opened only if it has changed since.
        return _OPENED.read(self._packed_path, PackedRefs)

    def _replace_packed(self, content: bytes) -> None:
        """Replace packed-refs; the caller holds its lock."""
        folder = markers(self._git_dir)
        replace_file(self._packed_path, content, temporary_in=folder, durable=self._durable)


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
        with suppress(FileNotFoundError):
            found[name] = read_loose(os.path.join(folder, name))
    return found


# Strict refs: what `git fsck` says of HEAD, of the files of refs, and of packed-refs.
#
# Source: fsck_head_link in git's builtin/fsck.c, refs/packed-backend.c; `git refs verify`.

_HEADER = re.compile(rb"# pack-refs with:(?: [a-z-]+)* ?\n")
_SYMBOLIC = re.compile(rb"ref:\s*(refs/[^\s]+)\s*")
_BRANCHES = b"refs/heads/"


class BadRefFile(NamedTuple):
    """A file of refs that git rejects, or would not have written."""

    name: str

    problem: str
    hint: str


def check_head(git_dir: str) -> Iterator[BadRefFile]:
    """Check that HEAD names a branch or a commit, as git takes no other directory."""
    content = read_if_there(os.path.join(git_dir, "HEAD"))
    target = _SYMBOLIC.fullmatch(content)
    if target is not None and target[1].startswith(_BRANCHES) and check_ref_format(Ref(target[1])):
        return
    if _OID.fullmatch(content.rstrip()):
        return
    problem = f"names no branch and no commit: {content[:60]!r}"
    path = quote_path(os.path.join(git_dir, "HEAD"))
    hint = f"make it name the branch that it named: echo 'ref: refs/heads/main' > {path}"
    yield BadRefFile("HEAD", problem, hint)


def check_loose_refs(git_dir: str) -> Iterator[tuple[str, Oid | BadRefFile]]:
    """Yield each file below refs/ by name, with its value or its problem, but no symbolic refs."""
    for folder, folders, files in os.walk(os.path.join(git_dir, "refs")):
        folders.sort()
        for file in sorted(files):
            name = os.path.relpath(os.path.join(folder, file), git_dir)
            if file.endswith(".lock"):
                continue
            if not os.path.isfile(os.path.join(folder, file)):
                if os.path.lexists(os.path.join(folder, file)):
                    # A pipe would never end; a link leads nowhere.
                    yield name, BadRefFile(name, "is no file", "move it out of the store")
                continue
            try:
                with open(os.path.join(git_dir, name), "rb") as opened:
                    content = opened.read(1000).rstrip()
            except FileNotFoundError:
                continue  # deleted or packed since
            if _OID.fullmatch(content):
                yield name, Oid(content.decode())
            elif _SYMBOLIC.fullmatch(content) is None:
                hint = f"copy that file away and delete it; `git log {name}` shows what is left"
                yield name, BadRefFile(name, "does not hold an object id", hint)


def check_packed_refs(git_dir: str) -> Iterator[BadRefFile]:
    """Check that git would have written packed-refs so: no line lost, no name out of order."""
    problem = _find_packed_problem(git_dir)
    if problem is not None:
        yield BadRefFile(PACKED_REFS, problem, PACKED_HINT)


def _find_packed_problem(git_dir: str) -> str | None:
    path = os.path.join(git_dir, PACKED_REFS)
    content = read_packed_refs(git_dir)
    header = read_header(content)
    if not content:
        return "is empty, and git writes no empty one" if os.path.lexists(path) else None
    if content.startswith(b"#") and _HEADER.fullmatch(header) is None:
        return f"has no header that git would write: {content[:60]!r}"
    try:
        names = [row.name for row in parse_packed_refs(path, content)]
    except BadPackedRefs as error:
        return error.problem
    is_sorted = b" sorted" in header
    for before, name in zip([b"", *names], names, strict=False):
        if not check_ref_format(Ref(name)):
            return f"has a name that git refuses: {name[:100]!r}"
        if is_sorted and name <= before:
            return f"says that it is sorted, and has {name[:100]!r} after {before[:100]!r}"
    return None
