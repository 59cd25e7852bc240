"""Read a pack of whole objects as it stands, without inflating any.

Both checksums are checked, so what is damaged is never copied.
Source: gitformat-pack(5).
"""

import hashlib
import mmap
import struct
import sys
from array import array

from uwf_git.store.objects.pack_file import INDEX, OID_BYTES, PACK, find_pack_problem
from uwf_git.store.objects.pack_writer import Entry

_BEGINNING = b"\377tOc\0\0\0\2"
_HEAD_BYTES = 12
_FAN_OUT_AT = 8
_NAMES_AT = _FAN_OUT_AT + 256 * 4
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
