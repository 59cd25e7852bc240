"""What a remote sent, in a folder of its own until it has been checked."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, NamedTuple, TypeAlias, cast

from dulwich.object_store import MemoryObjectStore
from dulwich.objects import Blob, ObjectID, RawObjectID, ShaFile, sha_to_hex
from dulwich.pack import generate_unpacked_objects

from uwf_git.errors import Refused
from uwf_git.model.names import Oid
from uwf_git.model.text import render_size
from uwf_git.store.durable import remove_file, sync_directories, sync_path
from uwf_git.store.git.config import GitConfig, is_shared, parse_size
from uwf_git.store.locks import hold_lock
from uwf_git.store.objects.commit import DEFAULT_BLOB_BYTES
from uwf_git.store.objects.incoming_pack import (
    DEFAULT_OBJECTS,
    DEFAULT_REFS,
    MAX_BLOB_SIZE,
    MAX_FETCH_OBJECTS,
    MAX_FETCH_REFS,
    MAX_FETCH_SIZE,
    IncomingPack,
    LimitedObjects,
    PackLimits,
    count_objects,
    transfer_too_large,
)
from uwf_git.store.objects.objects import DurableObjects, ObjectStore, disk_places
from uwf_git.store.objects.pack_writer import KeepFile, choose_name
from uwf_git.store.store import Store, open_store

# What goes over a connection to a remote, in plain values; imports no network code.


class FetchRequest(NamedTuple):
    wants: list[Oid]
    haves: list[Oid]
    """Commits that are here with their history, the likeliest to be known to the remote first."""


class Parcel(NamedTuple):
    changes: Mapping[str, Oid | None]
    """The new value of each ref; None deletes it."""

    objects: list[ObjectID]


class PushReport(NamedTuple):
    statuses: dict[str, str | None]
    """By ref: None if it was changed, else the remote's reason."""

    output: str

    is_atomic: bool = True
    """False if an atomic push was requested and the remote does not support it; nothing changed."""


ChooseWants: TypeAlias = Callable[[dict[str, Oid]], FetchRequest]
"""Decides by the remote's refs what to fetch."""

PackParcel: TypeAlias = Callable[[dict[str, Oid]], Parcel]
"""Decides by the remote's refs what to push. git's protocol lists them in the same connection."""


# Refs of a remote that lead to blobs, which are sent and never stored here.


def name_blob(content: bytes) -> Oid:
    return Oid(Blob.from_string(content).id.decode())


def hold_blobs(contents: Iterable[bytes]) -> ObjectStore:
    objects = MemoryObjectStore()
    objects.add_objects([(Blob.from_string(each), None) for each in contents])
    return cast("ObjectStore", objects)


def build_parcel(changes: Mapping[str, bytes | None]) -> Parcel:
    """Return the parcel that lets refs lead to blobs; None deletes a ref."""
    blobs = {ref: Blob.from_string(each) for ref, each in changes.items() if each is not None}
    return Parcel(
        {ref: Oid(blobs[ref].id.decode()) if ref in blobs else None for ref in changes},
        [blob.id for blob in blobs.values()],
    )


# Limits of what a store receives, from its git config; an invalid limit is an error.

RECEIVE_TIMEOUT = "uwf.receiveTimeout"

_DEFAULT_TIMEOUT_S = 600
_LONGEST_TIMEOUT_S = 24 * 3600


class ReceiveLimits(NamedTuple):
    most_blob_bytes: int
    timeout_s: int


def read_receive_limits(config: GitConfig) -> ReceiveLimits:
    """Read the limits of a store; zero means no limit, as for git's receive.maxInputSize."""
    timeout_s = _read(config, RECEIVE_TIMEOUT, _DEFAULT_TIMEOUT_S) or _LONGEST_TIMEOUT_S
    return ReceiveLimits(
        most_blob_bytes=_read(config, MAX_BLOB_SIZE, DEFAULT_BLOB_BYTES) or sys.maxsize,
        timeout_s=min(timeout_s, _LONGEST_TIMEOUT_S),
    )


def read_fetch_limits(config: GitConfig) -> PackLimits:
    """Read the limits of what a fetch brings; zero means no limit."""
    most_bytes = _read(config, MAX_FETCH_SIZE, -1)
    return PackLimits(
        most_blob_bytes=read_receive_limits(config).most_blob_bytes,
        most_objects=_read(config, MAX_FETCH_OBJECTS, DEFAULT_OBJECTS) or sys.maxsize,
        most_bytes=None if most_bytes < 0 else most_bytes or sys.maxsize,
        most_refs=_read(config, MAX_FETCH_REFS, DEFAULT_REFS) or sys.maxsize,
    )


def _read(config: GitConfig, name: str, default: int) -> int:
    value = config.get(name)
    if value is None:
        return default
    size = parse_size(value)
    if size is None or (name == RECEIVE_TIMEOUT and not value.isdecimal()):
        raise Refused(
            f"{name} is {value[:40]!r}, not a number such as 500, or 32m for a size",
            code="bad-receive-limit",
            hint=f"set it in the store that receives: `git config {name} NUMBER`",
            setting=name,
        )
    return size


# Count what a server sends besides objects: its list of refs, its answers, its messages.

_MOST_ERROR_BYTES = 64 * 1024


class Meter:
    def __init__(self, most_bytes: int) -> None:
        self._left = self._most = most_bytes

    def counted(self, read: Callable[..., bytes]) -> Callable[..., bytes]:
        """Return *read*, which raises `Refused` when the server has sent too much."""

        def read_and_count(*size: int) -> bytes:
            content = read(*size)
            self._left -= len(content)
            if self._left < 0:
                most = render_size(self._most)
                raise transfer_too_large(
                    f"more than {most} of refs and messages", most, setting=MAX_FETCH_REFS
                )
            return content

        return read_and_count

    def allow(self, objects: bytes) -> None:
        """Do not count *objects*, which were read: they have limits of their own."""
        self._left += len(objects)


def open_meter(config: GitConfig) -> Meter:
    return Meter(read_fetch_limits(config).most_talk_bytes)


class ErrorOutput:
    """The beginning of what ssh, or a git that it started, writes to standard error."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readlines(self) -> list[bytes]:
        """Return its first lines."""
        return self._stream.read(_MOST_ERROR_BYTES).splitlines(keepends=True)


# The quarantine: a store with the objects of a push that no hook has accepted yet; read-only.
#
# Source: git-receive-pack(1), "QUARANTINE ENVIRONMENT"; git(1), GIT_ALTERNATE_OBJECT_DIRECTORIES.


class ReceivedObjects(ObjectStore):
    def __init__(self, paths: Iterable[str]) -> None:
        self.places = tuple(DurableObjects(path) for path in paths)
        """The object directories, in the order in which they are searched."""

    def __contains__(self, sha1: ObjectID) -> bool:
        return any(sha1 in place for place in self.places)

    def __getitem__(self, sha1: ObjectID) -> ShaFile:
        for place in self.places:
            with suppress(KeyError):
                return place[sha1]
        raise KeyError(sha1)

    def get_raw(self, name: ObjectID) -> tuple[int, bytes]:
        for place in self.places:
            with suppress(KeyError):
                return place.get_raw(name)
        raise KeyError(name)


def open_received(git_dir: str, environ: Mapping[str, str]) -> Store:
    """Open the store at *git_dir* as a hook of a push sees it."""
    store = open_store(git_dir, environ=environ)
    received = environ.get("GIT_OBJECT_DIRECTORY")
    if not received:
        return store
    others = split_alternates(environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", ""))
    paths = [received, *others, os.path.join(store.path, "objects")]
    # As in git, relative to the working directory of the hook. dict: drop duplicates.
    unique = dict.fromkeys(os.path.realpath(path) for path in paths)
    return store._replace(objects=ReceivedObjects(unique))


_TIMES_A_BLOB = 24
_LARGEST_BLOB = 4 * 1024**3


def bytes_to_check(objects: ObjectStore, most_blob_bytes: int) -> int:
    """Return the memory for a check of blobs of that size: as text, a document and canonical."""
    return _TIMES_A_BLOB * min(most_blob_bytes, _LARGEST_BLOB) + mapped_bytes(objects)


def mapped_bytes(objects: ObjectStore) -> int:
    """Return how much address space reading *objects* may take: packs are mapped whole."""
    return sum(map(_pack_bytes, disk_places(objects)))


def _pack_bytes(place: DurableObjects) -> int:
    size = 0
    with suppress(FileNotFoundError), os.scandir(place.pack_dir) as files:
        for file in files:
            # Suppressed: its pack was united in this moment.
            with suppress(FileNotFoundError):
                size += file.stat().st_size
    return size + sum(map(_pack_bytes, place.others))


# A path between colons, or quoted as in C.
_PART = re.compile(r'"((?:[^"\\]|\\.?)*)"?:?|([^:]+):?|:', re.DOTALL)
_ESCAPE = re.compile(rb"\\(?:([0-3][0-7]{2})|([\x00-\xbf]|[\xc0-\xff][\x80-\xbf]*|))")
_ESCAPES = dict(zip(b'abfnrtv"\\', b'\a\b\f\n\r\t\v"\\', strict=True))


def split_alternates(text: str) -> list[str]:
    """Split a list of object directories as git does: at colons; parts may be quoted as in C."""
    parts = _PART.findall(text)
    paths = [
        os.fsdecode(_ESCAPE.sub(_unescaped, os.fsencode(one))) or other for one, other in parts
    ]
    return [path for path in paths if path]


def _unescaped(found: re.Match[bytes]) -> bytes:
    if found[1]:
        return bytes([int(found[1], 8)])
    return bytes(_ESCAPES[byte] for byte in found[2] if byte in _ESCAPES)


# Incoming objects: what a remote sent, in a folder of its own until it has been checked.
#
# Each transfer has a folder below `<git dir>/uwf/incoming/`; the next transfer removes what a
# killed one left. `move_into_store` stores all its objects durably, so no ref is durable before
# its objects. Why a folder of its own: git does the same (quarantine); and dulwich, killed while
# it completes a pack, leaves a `.idx.lock` behind that would block the same pack for ever.

_LOCK = ".lock"
_OURS = re.compile(r"[0-9a-f]{16}\.lock")
_PACK, _INDEX = "received.pack", "received.idx"
_PACK_HEAD_BYTES = 12
_READ_ONLY = 0o444

_DEFAULT = PackLimits()


class Incoming:
    def __init__(self, store: Store, folder: str, limits: PackLimits) -> None:
        self._store, self._folder, self._limits = store, folder, limits
        os.makedirs(os.path.join(folder, "pack"))
        os.makedirs(os.path.join(folder, "info"))
        with open(os.path.join(folder, "info", "alternates"), "wb") as file:
            file.write(os.fsencode(os.path.join(store.path, "objects")) + b"\n")
        self.objects = DurableObjects(folder)
        """The received objects, and behind them the objects of the store."""
        self._head = b""
        self._written = 0
        self.spool: IO[bytes] = open(os.path.join(folder, _PACK), "w+b")  # noqa: SIM115 (closed with the transfer)
        """What was written so far; whoever provides the folder closes it."""

    def write(self, content: bytes) -> int:
        if len(self._head) < _PACK_HEAD_BYTES:
            self._head += content[:_PACK_HEAD_BYTES]
            # What is no pack at all is for `unpack` to tell.
            with suppress(ValueError):
                self._limits.check_count(count_objects(self._head))
        self._written += len(content)
        self._limits.check_pack(self._written)
        return self.spool.write(content)

    def unpack(self) -> None:
        """Index what was written as a pack; check every object in it, and add missing bases."""
        if not self._written:
            return
        self.spool.flush()
        index = os.path.join(self._folder, _INDEX)
        checksum = IncomingPack(self.spool, self._limits, self._find_base).index(index)
        self.spool.close()
        if count_objects(self._head) == 0:
            return
        name = os.path.join(self.objects.pack_dir, f"pack-{checksum.hex()}")
        for path, ending in ((os.path.join(self._folder, _PACK), ".pack"), (index, ".idx")):
            os.chmod(path, _READ_ONLY)
            os.replace(path, name + ending)

    def _find_base(self, name: bytes) -> tuple[int, bytes]:
        most = self._limits.most_blob_bytes
        objects = LimitedObjects(self._store.objects, most_blob_bytes=most)
        return objects.get_raw(sha_to_hex(RawObjectID(name)))

    def move_into_store(self, until_needed: ExitStack) -> None:
        """Move the received packs into the store, durably.

        git and uwf leave them alone until *until_needed* ends: the caller moves the refs before.
        """
        self.objects.close()
        target = os.path.join(self._store.path, "objects", "pack")
        os.makedirs(target, exist_ok=True)
        durable = self._store.config.get_flag("uwf.fsync", default=True)
        names = os.listdir(self.objects.pack_dir)
        for name in names:
            if name.endswith(".idx"):
                here = os.path.join(self.objects.pack_dir, name.removesuffix(".idx"))
                there = choose_name(target)
                keep = KeepFile(there, share=is_shared(self._store.config))
                until_needed.callback(keep.release)
                # For git a pack exists as soon as its index does, so move the index last.
                for ending in (".pack", ".idx"):
                    if durable:
                        sync_path(here + ending)
                    os.replace(here + ending, there + ending)
        if durable and names:
            sync_directories([target])


@contextmanager
def receive_objects(store: Store, limits: PackLimits = _DEFAULT) -> Iterator[Incoming]:
    """Provide a folder for one transfer within *limits*, and remove it afterwards."""
    place = store.local_path("incoming")
    os.makedirs(place, exist_ok=True)
    _remove_stale(place)
    with ExitStack() as stack:
        folder = _claim(stack, place)
        try:
            incoming = Incoming(store, folder, limits)
            stack.callback(incoming.spool.close)
            yield incoming
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            remove_file(folder + _LOCK)


def _claim(stack: ExitStack, place: str) -> str:
    while True:
        folder = os.path.join(place, os.urandom(8).hex())
        if stack.enter_context(hold_lock(folder + _LOCK, wait=False)) is not None:
            return folder


def _remove_stale(place: str) -> None:
    """Remove the folders of dead processes: their locks are free."""
    for name in os.listdir(place):
        # Other names are not ours: the folder may be a link to anywhere.
        if _OURS.fullmatch(name) is None:
            continue
        path = os.path.join(place, name)
        with hold_lock(path, wait=False) as descriptor:
            if descriptor is not None:
                shutil.rmtree(path.removesuffix(_LOCK), ignore_errors=True)
                remove_file(path)


def copy_objects(source: ObjectStore, needed: Sequence[ObjectID], incoming: Incoming) -> None:
    """Copy the objects *needed* from *source* into *incoming*."""
    if needed:
        todo = [(oid, None) for oid in needed]
        container = cast("DurableObjects", source).by_dulwich
        unpacked = generate_unpacked_objects(container, todo, ofs_delta=False, reuse_deltas=False)
        incoming.objects.by_dulwich.add_pack_data(len(needed), unpacked)
