"""List the packs that steps wrote and that nobody has packed since.

git, a fetch and `uwf gc` name a pack after its checksum, the writers of steps draw the name by lot:
so the last bytes of an index tell which are packed already. Names stay, so each is read once.
"""

import functools
import itertools
import os
import struct
from collections.abc import Iterable
from typing import NamedTuple

from uwf_git.store.disk.durable import read_if_there, remove_file
from uwf_git.store.objects.pack_file import INDEX, OID_BYTES, PACK
from uwf_git.store.objects.pack_writer import is_kept

MOST_PACKS = 16
"""More small packs than these are united."""

LARGE_BYTES = 32 * 1024 * 1024
"""From this size a pack is not copied any more."""

_SUM_BYTES = 20
# An index has a head and a name, a CRC-32 and an offset for each object; gitformat-pack(5).
NAMES_AT = 8 + 256 * 4
_EMPTY_INDEX_BYTES = NAMES_AT + 2 * _SUM_BYTES
_OBJECT_BYTES = OID_BYTES + 4 + 4
_MULTI = "multi-pack-index"
_MULTI_HEAD = struct.Struct(">4s4BI")
_CHUNK = struct.Struct(">4sQ")
_NAMES = b"PNAM"


class SmallPack(NamedTuple):
    """A pack without deltas, and without files of git beside it."""

    path: str

    objects: int

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
    """Check, for the price of one listing, whether some packs may have to be united."""
    return len(list_stems(os.path.join(git_dir, "objects", "pack"))) > MOST_PACKS


def list_small_packs(folder: str) -> list[SmallPack]:
    """List the packs in *folder* that steps wrote and that are still to be copied."""
    return [pack for pack in list_own_packs(folder) if pack.size_bytes < LARGE_BYTES]


def list_own_packs(folder: str) -> list[SmallPack]:
    """List the packs in *folder* that steps wrote, the smallest first.

    Packs with a `.keep` and packs in git's multi-pack-index are left out: git relies on these.
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

    Most often the sizes of the files decide, and no file is opened.
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
    """Check whether the pack at *path*, without its ending, is named after its checksum."""
    try:
        with open(path + INDEX, "rb", buffering=0) as file:
            file.seek(-2 * _SUM_BYTES, os.SEEK_END)
            return path.endswith(f"-{file.read(_SUM_BYTES).hex()}")
    except OSError:
        return True


def _read_multi_pack_index(folder: str) -> set[str]:
    """List the packs, without endings, that git's multi-pack-index names: gitformat-pack(5)."""
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
