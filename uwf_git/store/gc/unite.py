"""Unite small packs, so that a store of many steps has few files."""

import functools
import hashlib
import itertools
import mmap
import os
import struct
import sys
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from uwf_git.debug_log import debug
from uwf_git.store.disk.durable import read_if_there, remove_file
from uwf_git.store.disk.file_lock import hold_lock
from uwf_git.store.gc.lock import is_git_gc_running
from uwf_git.store.git.shared_mode import is_shared
from uwf_git.store.objects.pack_file import INDEX, OID_BYTES, PACK, find_pack_problem
from uwf_git.store.objects.pack_writer import Entry, PackRights, is_kept, write_pack
from uwf_git.store.store import Store

# List the packs that steps wrote and that nobody has packed since.
#
# git, a fetch and `uwf gc` name a pack after its checksum, the writers of steps draw the name by
# lot: so the last bytes of an index tell which are packed already. Names stay, so each is read
# once.

MOST_PACKS = 16
"""More small packs than these are united."""

LARGE_BYTES = 32 * 1024 * 1024
"""From this size a pack is not copied any more."""

_SUM_BYTES = 20
# An index has a head and a name, a CRC-32 and an offset for each object; gitformat-pack(5).
_NAMES_AT = 8 + 256 * 4
_EMPTY_INDEX_BYTES = _NAMES_AT + 2 * _SUM_BYTES
_OBJECT_BYTES = OID_BYTES + 4 + 4
_MULTI = "multi-pack-index"
_MULTI_HEAD = struct.Struct(">4s4BI")
_CHUNK = struct.Struct(">4sQ")
_NAMES = b"PNAM"


class SmallPack(NamedTuple):
    """A pack without deltas, and without files of git beside it."""

    path: str
    """Without its ending."""

    objects: int
    """How many objects it has."""

    size_bytes: int
    mtime_ns: int


def list_stems(folder: str) -> list[str]:
    """List the packs in *folder*, without their endings, that have an index and no other file.

    git puts others beside its own: `.keep`, `.rev`, `.bitmap`, `.mtimes`, `.promisor`.
    """
    endings: dict[str, set[str]] = {}
    for name in _names(folder):
        stem, ending = os.path.splitext(name)
        endings.setdefault(stem, set()).add(ending)
    return sorted(stem for stem, found in endings.items() if found == {PACK, INDEX})


def has_many_packs(git_dir: str) -> bool:
    """Tell, for the price of one listing, whether some packs may have to be united."""
    return len(list_stems(os.path.join(git_dir, "objects", "pack"))) > MOST_PACKS


def list_small_packs(folder: str) -> list[SmallPack]:
    """List the packs in *folder* that steps wrote and that are still to be copied."""
    return [pack for pack in list_own_packs(folder) if pack.size_bytes < LARGE_BYTES]


def list_own_packs(folder: str) -> list[SmallPack]:
    """List the packs in *folder* that steps wrote, the smallest first.

    Not those that have a `.keep`, or that the multi-pack-index of git names: git relies on these.
    """
    stems = list_stems(folder)
    by_git = _read_multi_pack_index(folder)
    found = (_look_at(os.path.join(folder, stem)) for stem in stems if stem not in by_git)
    # Only after the listing: a `.keep` is older than the name of its pack.
    packs = [pack for pack in found if pack is not None and not is_kept(pack.path)]
    return sorted(packs, key=lambda pack: (pack.size_bytes, pack.path))


def remove_packs(packs: Iterable[SmallPack]) -> None:
    """Remove *packs* whose objects are elsewhere; not what git or a person relies on by now."""
    by_folder: dict[str, set[str]] = {}
    for pack in packs:
        folder, stem = os.path.split(pack.path)
        if folder not in by_folder:
            by_folder[folder] = _read_multi_pack_index(folder)
        if stem not in by_folder[folder] and not is_kept(pack.path):
            # The index first, as git does: a pack without one is missing for all.
            remove_file(pack.path + INDEX)
            remove_file(pack.path + PACK)


def count_unpacked(folder: str, *, up_to: int) -> int:
    """Count the objects in packs that steps wrote; beyond *up_to* only whether there are more.

    Most often the sizes alone tell, and no file is opened.
    """
    counts = {os.path.join(folder, stem): 0 for stem in list_stems(folder)}
    for path in counts:
        try:
            counts[path] = _count_objects(os.stat(path + INDEX).st_size)
        except FileNotFoundError:
            # It was united or packed in this moment.
            continue
    total = sum(counts.values())
    for path in sorted(counts, key=lambda path: -counts[path]):
        if total <= up_to:
            break
        if is_packed(path):
            total -= counts[path]
    return total


@functools.lru_cache(maxsize=1000)
def is_packed(path: str) -> bool:
    """Tell whether the pack at *path*, without its ending, is named after its checksum."""
    try:
        with open(path + INDEX, "rb", buffering=0) as file:
            file.seek(-2 * _SUM_BYTES, os.SEEK_END)
            return path.endswith(f"-{file.read(_SUM_BYTES).hex()}")
    except OSError:
        return True


def _read_multi_pack_index(folder: str) -> set[str]:
    """List the packs that the multi-pack-index of *folder* names, without their endings.

    Source: gitformat-pack(5), "multi-pack-index (MIDX) files have the following format".
    """
    content = read_if_there(os.path.join(folder, _MULTI))
    try:
        _magic, _version, _hash, chunks, _bases, _packs = _MULTI_HEAD.unpack_from(content)
        places = [
            _CHUNK.unpack_from(content, _MULTI_HEAD.size + number * _CHUNK.size)
            for number in range(chunks + 1)
        ]
    except struct.error:
        return set()
    spans = itertools.pairwise(places)
    names = b"".join(content[at:end] for (kind, at), (_next, end) in spans if kind == _NAMES)
    return {os.path.splitext(os.fsdecode(name))[0] for name in names.split(b"\0") if name}


def _look_at(path: str) -> SmallPack | None:
    try:
        pack, index = os.stat(path + PACK), os.stat(path + INDEX)
    except FileNotFoundError:
        return None
    if is_packed(path):
        return None
    return SmallPack(path, _count_objects(index.st_size), pack.st_size, pack.st_mtime_ns)


def _count_objects(index_bytes: int) -> int:
    return max(index_bytes - _EMPTY_INDEX_BYTES, 0) // _OBJECT_BYTES


def _names(folder: str) -> Iterable[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return ()


# Read a pack of whole objects as it stands, without inflating any.
#
# Both checksums are checked, so what is damaged is never copied. Source: gitformat-pack(5).

_BEGINNING = b"\377tOc\0\0\0\2"
_HEAD_BYTES = 12
_COUNT = struct.Struct(">I")
_WHOLE = range(1, 5)


def read_whole_entries(path: str) -> list[Entry] | None:
    """Return what the pack at *path*, without its ending, has, in its order.

    None if it is gone or damaged, or has deltas.
    """
    try:
        if find_pack_problem(path + PACK) is not None:
            return None
        index, content = _map(path + INDEX), _map(path + PACK)
        if not (_is_sound(index) and _is_sound(content)):
            return None
        return _split(index, content)
    except (OSError, ValueError, struct.error):
        # ValueError: a file is empty.
        return None


def _split(index: memoryview, content: memoryview) -> list[Entry] | None:
    if index[: len(_BEGINNING)] != _BEGINNING:
        return None
    (count,) = _COUNT.unpack_from(index, _NAMES_AT - _COUNT.size)
    crcs_at = _NAMES_AT + count * OID_BYTES
    offsets_at = crcs_at + count * _COUNT.size
    names = bytes(index[_NAMES_AT:crcs_at])
    crcs = _numbers(index[crcs_at:offsets_at])
    offsets = _numbers(index[offsets_at : offsets_at + count * _COUNT.size])
    order = sorted(range(count), key=offsets.__getitem__)
    ends = [*(offsets[at] for at in order[1:]), len(content) - OID_BYTES]
    if count and offsets[order[0]] != _HEAD_BYTES:
        return None
    entries = [
        Entry(names[at * OID_BYTES : (at + 1) * OID_BYTES], crcs[at], content[offsets[at] : end])
        for at, end in zip(order, ends, strict=True)
    ]
    is_whole = all(entry.content and entry.content[0] >> 4 & 7 in _WHOLE for entry in entries)
    return entries if is_whole else None


def _numbers(content: memoryview) -> "array[int]":
    numbers = array("I", bytes(content))
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def _is_sound(content: memoryview) -> bool:
    """Tell whether a file ends with the SHA-1 of what is before."""
    digest = hashlib.sha1(content[:-OID_BYTES], usedforsecurity=False).digest()
    return digest == content[-OID_BYTES:]


def _map(path: str) -> memoryview:
    with open(path, "rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


# Unite small packs, so that a store of many steps has few files and reading stays fast.
#
# Entries are copied as they are. The new pack is durable before a source goes; a process that is
# killed leaves objects twice, or packs without an index, which nobody reads. Nobody waits for it.

_RATIO = 2
_FOR_THE_GROUP = 0o660

# This long a process in the background has until it takes a lock.
_START_S = 10.0

# What takes 20 ms on a slow machine.
_FEW_BYTES = 512 * 1024
_FEW_OBJECTS = 2000


def find_union(store: Store) -> list[SmallPack]:
    """List the packs of *store* to unite now; most often none, for the price of one listing."""
    return choose_union(list_small_packs(_folder(store))) if has_many_packs(store.path) else []


def choose_union(packs: Sequence[SmallPack]) -> list[SmallPack]:
    """Choose from *packs*, the smallest first, which to unite; none unless there are many.

    The largest that is less than twice all smaller ones, and these. So what stays apart at least
    triples from pack to pack, and an object is copied a few times in all.
    """
    if len(packs) <= MOST_PACKS:
        return []
    count = smaller = 0
    for number, pack in enumerate(packs):
        if pack.size_bytes < _RATIO * smaller:
            count = number + 1
        smaller += pack.size_bytes
    return list(packs[:count])


def is_quick(packs: Sequence[SmallPack]) -> bool:
    """Tell whether uniting *packs* takes less than some 20 ms."""
    size = sum(pack.size_bytes for pack in packs)
    return size <= _FEW_BYTES and sum(pack.objects for pack in packs) <= _FEW_OBJECTS


def unite_packs(store: Store) -> int:
    """Unite what is to be united in *store*; return how many packs became one.

    None while another process is at it, or packs: a git whose packs vanish gives up.

    Raises:
        OSError: the system refused a write; nothing was removed.
        LockingUnsupported: the file system has no flock.
    """
    with _hold(store) as descriptor:
        if descriptor is None or is_git_gc_running(store):
            return 0
        # The next union may again be one for the background.
        os.ftruncate(descriptor, 0)
        # Looked for anew: whoever had the lock before may have done it.
        packs = find_union(store)
        return _unite(store, packs) if packs else 0


def claim_start(store: Store) -> bool:
    """Tell whether to start a process that tidies *store*; not if one is just starting."""
    with _hold(store) as descriptor:
        if descriptor is None:
            return False
        last = os.fstat(descriptor)
        if last.st_size and 0 <= time.time() - last.st_mtime < _START_S:
            return False
        os.pwrite(descriptor, b"started\n", 0)
        return True


@contextmanager
def pause_uniting(store: Store) -> Iterator[None]:
    """Let no process unite, nor be started for it; wait for the one that is at it."""
    with _hold(store, wait=True) as descriptor:
        if descriptor is not None:
            os.ftruncate(descriptor, 0)
        yield


def _unite(store: Store, packs: Sequence[SmallPack]) -> int:
    entries: dict[bytes, Entry] = {}
    used = []
    for pack in sorted(packs, key=lambda pack: pack.mtime_ns):
        found = read_whole_entries(pack.path)
        # What is gone was packed by git. What is damaged stays, for `uwf verify` to tell of.
        if found is not None:
            used.append(pack)
            for entry in found:
                entries.setdefault(entry.oid, entry)
    if len(used) <= 1:
        return 0
    _write_union(store, list(entries.values()), mtime_ns=used[-1].mtime_ns)
    remove_packs(used)
    debug("TQ4H8WNC", "packs united", packs=len(used), objects=len(entries))
    return len(used)


def _write_union(store: Store, entries: Sequence[Entry], *, mtime_ns: int) -> None:
    """Write the pack of *entries*, which are in the store already, durably.

    Its time is *mtime_ns*: objects that no ref needs are then as old as before; git prunes by it.

    Raises:
        OSError: the system refused a write.
    """
    durable = store.config.get_flag("uwf.fsync", default=True)
    rights = PackRights(durable, share=is_shared(store.config))
    new = write_pack(_folder(store), entries, rights, keep=False)
    os.utime(new.path + PACK, ns=(mtime_ns, mtime_ns))


@contextmanager
def _hold(store: Store, *, wait: bool = False) -> Iterator[int | None]:
    with hold_lock(store.local_path("locks", "unite"), wait=wait) as descriptor:
        if descriptor is not None and is_shared(store.config):
            # Another user's is as its owner made it.
            with suppress(PermissionError):
                os.fchmod(descriptor, _FOR_THE_GROUP)
        yield descriptor


def _folder(store: Store) -> str:
    return os.path.join(store.path, "objects", "pack")
