"""Unite small packs, so that a store of many steps has few files and reading stays fast.

Entries are copied as they are. The new pack is durable before a source goes; a process that is
killed leaves objects twice, or packs without an index, which nobody reads. Nobody waits for it.
"""

import hashlib
import mmap
import os
import struct
import sys
import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from uwf_git.debug_log import debug
from uwf_git.store.disk.file_lock import hold_lock
from uwf_git.store.gc.lock import is_git_gc_running
from uwf_git.store.gc.small_packs import (
    MOST_PACKS,
    NAMES_AT,
    SmallPack,
    has_many_packs,
    list_small_packs,
    remove_packs,
)
from uwf_git.store.git.shared_mode import is_shared
from uwf_git.store.objects.pack_file import INDEX, OID_BYTES, PACK, find_pack_problem
from uwf_git.store.objects.pack_writer import Entry, PackRights, write_pack
from uwf_git.store.store import Store

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
    (count,) = _COUNT.unpack_from(index, NAMES_AT - _COUNT.size)
    crcs_at = NAMES_AT + count * OID_BYTES
    offsets_at = crcs_at + count * _COUNT.size
    names = bytes(index[NAMES_AT:crcs_at])
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
    """Check whether a file ends with the SHA-1 of what is before."""
    digest = hashlib.sha1(content[:-OID_BYTES], usedforsecurity=False).digest()
    return digest == content[-OID_BYTES:]


def _map(path: str) -> memoryview:
    with open(path, "rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


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
    """Choose from *packs*, the smallest first, which to unite; an empty list unless there are many.

    The largest pack that is less than twice all smaller packs, and the smaller packs. So the packs
    that stay apart at least triple in size from one to the next, and an object is copied a few
    times in all.
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
    """Check whether uniting *packs* takes less than some 20 ms."""
    size = sum(pack.size_bytes for pack in packs)
    return size <= _FEW_BYTES and sum(pack.objects for pack in packs) <= _FEW_OBJECTS


def unite_packs(store: Store) -> int:
    """Unite small packs of *store*; return how many packs became one.

    None while another process unites or packs: a git whose packs vanish gives up. Raises
    LockingUnsupported on a file system without flock.
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
    """Check whether to start a process that tidies *store*; not if another is just starting."""
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
    """Let no process unite packs, nor be started for that; wait for the process that unites now."""
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

    Its time is *mtime_ns*, so objects that no ref needs stay as old as they were: git prunes by
    age.
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
