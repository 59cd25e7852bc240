"""Write the index of a pack, version 2.

Source: gitformat-pack(5), "Version 2 pack-*.idx files support packs larger than 4 GiB".
"""

import hashlib
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

_BEGINNING = b"\377tOc\0\0\0\2"
_OID_BYTES = 20
_FAR = 1 << 31


def write_index(
    path: str, *, names: bytes, crcs: Sequence[int], offsets: Sequence[int], pack_sum: bytes
) -> None:
    """Write the index of a pack with *names* of 20 bytes each, in the order of *offsets*.

    Raises:
        ValueError: a name is there twice.
    """
    parts = format_index(names=names, crcs=crcs, offsets=offsets, pack_sum=pack_sum)
    with open(path, "wb") as file:
        file.writelines(parts)


def format_index(
    *, names: bytes, crcs: Sequence[int], offsets: Sequence[int], pack_sum: bytes
) -> Iterator[bytes]:
    """Return the content of the index, in parts.

    Raises:
        ValueError: a name is there twice.
    """
    order = sorted(range(len(offsets)), key=lambda at: _name(names, at))
    ordered = b"".join(_name(names, at) for at in order)
    _check_unique(ordered)
    return _with_digest(
        [
            _BEGINNING,
            _pack("I", _fan_out(ordered)),
            ordered,
            _pack("I", (crcs[at] for at in order)),
            *_pack_offsets([offsets[at] for at in order]),
            pack_sum,
        ]
    )


def _with_digest(parts: Iterable[bytes]) -> Iterator[bytes]:
    digest = hashlib.sha1(usedforsecurity=False)
    for part in parts:
        digest.update(part)
        yield part
    yield digest.digest()


def _fan_out(ordered: bytes) -> list[int]:
    fan_out = [0] * 256
    for at in range(0, len(ordered), _OID_BYTES):
        fan_out[ordered[at]] += 1
    return list(accumulate(fan_out))


def _pack_offsets(offsets: Sequence[int]) -> tuple[bytes, bytes]:
    far = [offset for offset in offsets if offset >= _FAR]
    numbers = iter(range(len(far)))
    near = (_FAR | next(numbers) if offset >= _FAR else offset for offset in offsets)
    return _pack("I", near), _pack("Q", far)


def _name(names: bytes, at: int) -> bytes:
    return names[at * _OID_BYTES : (at + 1) * _OID_BYTES]


def _check_unique(ordered: bytes) -> None:
    for at in range(_OID_BYTES, len(ordered), _OID_BYTES):
        name = ordered[at : at + _OID_BYTES]
        if name == ordered[at - _OID_BYTES : at]:
            raise ValueError(f"the pack has the object {name.hex()} twice")


def _pack(kind: str, numbers: Iterable[int]) -> bytes:
    packed = array(kind, numbers)
    if sys.byteorder == "little":
        packed.byteswap()
    return packed.tobytes()
