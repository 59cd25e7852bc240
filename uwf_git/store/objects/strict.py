"""Objects that are read without trust: their bytes are hashed and their form is checked."""

import hashlib
import os
import re
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from dulwich.errors import ChecksumMismatch
from dulwich.object_store import BaseObjectStore, DiskObjectStore
from dulwich.objects import ObjectID, RawObjectID, ShaFile, Tree, hex_to_sha
from dulwich.pack import Pack as DulwichPack
from dulwich.pack import UnpackedObject

from uwf_git.model.names import Oid
from uwf_git.store.durable import list_entries
from uwf_git.store.objects.commit import (
    END_OF_TIME_S,
    CommitView,
    build_view,
    read_commit,
    read_raw_commit,
)
from uwf_git.store.objects.objects import BROKEN, DurableObjects, ObjectStore
from uwf_git.store.objects.pack_file import (
    INDEX,
    REF_DELTA,
    UNUSUAL,
    ByteCache,
    Pack,
    find_pack_problem,
    name_object,
)

# What is left to dulwich of the objects on the disk: old formats, damage, what its client sends.
#
# No step imports this module: dulwich's object store costs 20 ms.


class DulwichObjects(DiskObjectStore):
    """dulwich's store of the same objects, which reads by ours what ours can read."""

    def __init__(self, objects: DurableObjects) -> None:
        super().__init__(objects.path)
        # It holds this one, and nothing closes its packs but its end.
        self._objects: DurableObjects = weakref.proxy(objects)

    @property
    def alternates(self) -> list[BaseObjectStore]:
        return [other.by_dulwich for other in self._objects.others]

    def __contains__(self, sha: ObjectID | RawObjectID) -> bool:
        return sha in self._objects

    def get_raw(self, name: ObjectID | RawObjectID) -> tuple[int, bytes]:
        return self._objects.get_raw(name)

    def get_unusual(self, oid: ObjectID, path: str) -> tuple[int, bytes]:
        """Return what dulwich reads of *oid*, whose loose file would be at *path*.

        Raises KeyError, or dulwich's errors about damage.
        """
        # A file that goes on behind its object dulwich overlooks.
        with suppress(OSError):
            if problem := find_loose_problem(path):
                raise ValueError(problem)
        kind, content = super().get_raw(oid)
        actual = name_object(kind, content).hex().encode()
        if actual != oid:
            raise ChecksumMismatch(oid, actual)
        return kind, content

    def _update_pack_cache(self) -> list[DulwichPack]:
        """Let dulwich open only what it alone can read: it holds each index open."""
        names = self._objects.list_unusual_packs()
        for gone in self._pack_cache.keys() - set(names):
            self._pack_cache.pop(gone).close()
        new = []
        for name in names:
            if name not in self._pack_cache:
                # Suppressed: it is gone.
                with suppress(KeyError):
                    new.append(self._get_pack_by_name(name + INDEX))
        return new

    def iter_unpacked_subset(
        self,
        shas: Iterable[ObjectID | RawObjectID],
        *,
        include_comp: bool = False,
        allow_missing: bool = False,
        convert_ofs_delta: bool = True,
    ) -> Iterator[UnpackedObject]:
        """Yield the deltas against others of *shas*, to send them as they are.

        Only these entries are read, and not the packs around them. The options are dulwich's.
        """
        del include_comp, allow_missing, convert_ofs_delta
        places = dict(filter(None, map(self._find_place, shas)))
        names = {place: name for name, place in places.items()}
        for name, (pack, offset) in places.items():
            # Suppressed: it is gone, or damaged, and what is sent whole is checked.
            with suppress(*UNUSUAL):
                delta, base = pack.find_delta(offset) or (b"", None)
                against = None if base is None else names.get((pack, base))
                if against is not None:
                    yield UnpackedObject(
                        REF_DELTA, delta_base=against, decomp_chunks=[delta], sha=name
                    )

    def _find_place(
        self, oid: ObjectID | RawObjectID
    ) -> tuple[RawObjectID, tuple[Pack, int]] | None:
        for place in (self._objects, *self._objects.others):
            found = place.ask_packs(ObjectID(oid), lambda pack, offset: (pack, offset))
            if found is not None:
                return hex_to_sha(ObjectID(oid)), found
        return None

    def get_midx(self) -> None:
        """Return no multi-pack index: each pack has its own, and looking for it costs a stat."""


# Strict commits: the rules of git and of FORMAT.md that reading a commit does not need.
#
# A commit without a problem passes `git fsck --strict` and git's `transfer.fsckObjects`, and
# every reader finds the same trailers in it (FACTS 3 has messages in which they differ). Source:
# fsck_commit and fsck_ident in git's fsck.c.

# A longer date overflows in git when it adds the time zone. An empty name with a space passes.
_IDENTITY = rb"(?!<)[^<>\n\0]* <[^<>\n\0]*> (?:0|[1-9][0-9]{0,17}) [+-][0-9]{4}"
# What may follow the committer: one signature, as `git commit -S` writes it. Readers differ in what
# they make of other headers there; of a second "parent" or a second signature, for two.
_SIGNATURE = re.compile(rb"(?:gpgsig [^\n]*\n(?: [^\n]*\n)*)?")
_STRICT = re.compile(
    rb"tree ([0-9a-f]{40})\n"
    rb"((?:parent [0-9a-f]{40}\n)*)"
    rb"author (?=([^\n]*>))" + _IDENTITY + rb"\n"
    rb"committer (?=[^\n]*> ([0-9]+))" + _IDENTITY + rb"\n"
    rb"(?:[^\n\0]+\n)*"
    rb"\n"
)
# git decodes the message by this header, and may find other trailers than we do; we read UTF-8.
_ENCODING = re.compile(rb"^encoding[ \n]", re.MULTILINE)
_NAMES = re.compile(rb"\n(author|committer) ([^\n]*)")
# A subject, a body whose every line is indented, and the trailers.
_MESSAGE = re.compile(
    rb"[^\n\0]+\n\n(?:(?: {4}[^\n\0]+)?\n)*(?:Uwf-[A-Z][A-Za-z-]*: [\x21-\x7e]+\n)+"
)


class Person(NamedTuple):
    identity: bytes
    """``name <email>``."""

    date: bytes
    """Seconds since 1970, and the time zone."""


class StrictCommit(NamedTuple):
    """A commit, checked by the rules of git and of FORMAT.md."""

    view: CommitView
    problem: str | None
    """A violation that `read_commit` accepts; None if there is none."""

    author: Person
    committer: Person
    is_signed: bool
    """It has a signature, good or bad."""


def read_strict_commit(objects: ObjectStore, oid: Oid) -> StrictCommit:
    content = read_raw_commit(objects, oid)
    found = _STRICT.match(content)
    # read_commit raises if it is no commit at all; else it only breaks one of git's rules.
    view = read_commit(objects, oid) if found is None else build_view(oid, found)
    header = content[: len(content) - len(view.message)]
    problem = _header_problem(header) if found is None else _find_odd_header(header)
    if problem is None and view.time_s >= END_OF_TIME_S:
        problem = f"has the date {view.time_s}, which git's commit-graph cannot hold"
    if problem is None and view.message != view.message.decode(errors="replace").encode():
        problem = "has a message that is not UTF-8"
    if problem is None and _MESSAGE.fullmatch(view.message) is None:
        problem = "has a line between subject and trailers that git may read as something else"
    author, committer = (_person(line) for _who, line in _NAMES.findall(header)[:2])
    return StrictCommit(view, problem, author, committer, is_signed=b"\ngpgsig" in header)


def _find_odd_header(header: bytes) -> str | None:
    """Return which header of a commit, its last blank line included, uwf never writes."""
    if _ENCODING.search(header):
        return "declares another encoding than UTF-8"
    more = header.partition(b"\ncommitter ")[2].partition(b"\n")[2][:-1]
    odd = _SIGNATURE.sub(b"", more, count=1)
    if odd:
        name = odd.partition(b"\n")[0][:40].decode(errors="replace")
        return f"has a header that uwf never writes: {name!r}"
    zones = [line.rpartition(b" ")[2] for _who, line in _NAMES.findall(header)]
    return None if set(zones) == {b"+0000"} else "has a date that is not in UTC (+0000)"


def _person(line: bytes) -> Person:
    identity, bracket, date = line.rpartition(b">")
    return Person(identity + bracket, date.strip())


def _header_problem(headers: bytes) -> str:
    for who, identity in _NAMES.findall(headers):
        if re.fullmatch(_IDENTITY, identity) is None:
            shown = identity.decode(errors="replace")[:80]
            return f"has an identity that git refuses as {who.decode()}: {shown!r}"
    return "is no commit that git would write"


# Strict files of objects: what `git fsck` says of loose objects, packs and their indexes.
#
# Each file is read once, in pieces; an object that nothing needs counts too. Source:
# gitrepository-layout(5), gitformat-pack(5), gitformat-commit-graph(5).

_FOLDER = re.compile("[0-9a-f]{2}")
_FILE = re.compile("[0-9a-f]{38}")
_CHECKED = (".pack", ".idx", ".rev", ".mtimes", ".bitmap", ".graph")
_PIECE = 1024 * 1024
_HASH_BYTES = 20
REBUILT = (
    "git makes it anew from the objects: move the file away, then `git gc`, or "
    "`git index-pack` for the index of a pack"
)
_PACK = "copy the pack away, then `git unpack-objects -r` gives what is whole in it; or `uwf clone`"


class BadObjectFile(NamedTuple):
    name: str
    """Below objects/."""

    problem: str
    hint: str


def check_object_files(objects: str) -> Iterator[BadObjectFile]:
    for folder in filter(_FOLDER.fullmatch, _list(objects)):
        for file in filter(_FILE.fullmatch, _list(os.path.join(objects, folder))):
            hint = BROKEN.format(folder, file)
            yield from _check(objects, f"{folder}/{file}", find_loose_problem, hint)
    for folder in ("pack", "info", "info/commit-graphs"):
        for file in _list(os.path.join(objects, folder)):
            hint = _PACK if file.endswith(".pack") else REBUILT
            yield from _check(objects, f"{folder}/{file}", _find_problem, hint)


def _check(
    objects: str, name: str, find_problem: Callable[[str], str | None], hint: str
) -> Iterator[BadObjectFile]:
    try:
        problem = find_problem(os.path.join(objects, name))
    except FileNotFoundError:
        return  # git has repacked since
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    if problem is not None:
        yield BadObjectFile(name, problem, hint)


def _list(folder: str) -> list[str]:
    # A pipe would never end.
    return sorted(each.name for each in list_entries(folder) if each.is_file() or each.is_dir())


def find_loose_problem(path: str) -> str | None:
    oid = "".join(path.split(os.sep)[-2:])
    stream, digest = zlib.decompressobj(), hashlib.sha1(usedforsecurity=False)
    try:
        with open(path, "rb") as file:
            while not stream.eof:
                more = stream.unconsumed_tail or file.read(_PIECE)
                if not more:
                    return "is cut short"
                digest.update(stream.decompress(more, _PIECE))
            if stream.unused_data or file.read(1):
                return "has garbage behind the object"
    except zlib.error as error:
        return f"cannot be unpacked: {error}"
    return None if digest.hexdigest() == oid else f"holds the object {digest.hexdigest()}"


def _find_problem(path: str) -> str | None:
    if not path.endswith((*_CHECKED, "/multi-pack-index", "/commit-graph")):
        return None
    with open(path, "rb") as file:
        digest = hashlib.sha1(usedforsecurity=False)
        left = os.fstat(file.fileno()).st_size - _HASH_BYTES
        while left > 0:
            piece = file.read(min(left, _PIECE))
            if not piece:
                return "is cut short"
            digest.update(piece)
            left -= len(piece)
        if file.read() != digest.digest():
            return "does not end with the checksum of its content: it is damaged or cut short"
    return find_pack_problem(path) if path.endswith(".pack") else None


# Objects that were read lately: many branches begin at one commit, and share most of a tree.

_MOST_BYTES = 8 * 1024 * 1024
_LONGEST_BYTES = 64 * 1024
# The approximate overhead of an object beside its content.
_OBJECT_BYTES = 200


class RecentObjects(ObjectStore):
    """An object store that keeps small objects that it has read; what it keeps is bounded."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._kept: ByteCache[ObjectID, tuple[int, bytes]]
        self._kept = ByteCache(_MOST_BYTES, largest=_LONGEST_BYTES)
        # Those of them that were asked for as trees: they are shared, so never modify one.
        self._trees: ByteCache[ObjectID, Tree] = ByteCache(_MOST_BYTES, largest=_LONGEST_BYTES)

    def __contains__(self, sha1: ObjectID) -> bool:
        return self._kept.get(sha1) is not None or sha1 in self._objects

    def __getitem__(self, sha1: ObjectID) -> ShaFile:
        tree = self._trees.get(sha1)
        if tree is not None:
            return tree
        kept = self._kept.get(sha1)
        if kept is None:
            found = self._objects[sha1]
            kept = found.type_num, found.as_raw_string()
            self._keep(sha1, kept)
        else:
            found = ShaFile.from_raw_string(*kept, sha=sha1)
        if isinstance(found, Tree):
            self._trees.put(sha1, found, len(kept[1]) + _OBJECT_BYTES)
        return found

    def get_raw(self, name: ObjectID) -> tuple[int, bytes]:
        found = self._kept.get(name)
        if found is None:
            found = self._objects.get_raw(name)
            self._keep(name, found)
        return found

    def _keep(self, oid: ObjectID, found: tuple[int, bytes]) -> None:
        self._kept.put(oid, found, len(found[1]) + _OBJECT_BYTES)
