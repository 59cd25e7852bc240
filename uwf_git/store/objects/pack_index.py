"""Write the index of a pack, version 2.

Source: gitformat-pack(5), "Version 2 pack-*.idx files support packs larger than 4 GiB".
"""

import hashlib
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence

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
    with open(path, "wb") as file:
        file.writelines(format_index(names=names, crcs=crcs, offsets=offsets, pack_sum=pack_sum))


def format_index(
    *, names: bytes, crcs: Sequence[int], offsets: Sequence[int], pack_sum: bytes
) -> Iterator[bytes]:
    """Yield the content of the index, in parts.

    Raises:
        ValueError: a name is there twice.
    """
    order = sorted(range(len(offsets)), key=lambda at: _name(names, at))
    ordered = b"".join(_name(names, at) for at in order)
    _check_unique(ordered)
    fan_out = [0] * 256
    for at in range(0, len(ordered), _OID_BYTES):
        fan_out[ordered[at]] += 1
    for byte in range(1, 256):
        fan_out[byte] += fan_out[byte - 1]
    far = [offset for offset in (offsets[at] for at in order) if offset >= _FAR]
    numbers = iter(range(len(far)))
    near = (_FAR | next(numbers) if offsets[at] >= _FAR else offsets[at] for at in order)
    digest = hashlib.sha1(usedforsecurity=False)
    for part in (
        _BEGINNING,
        _pack("I", fan_out),
        ordered,
        _pack("I", (crcs[at] for at in order)),
        _pack("I", near),
        _pack("Q", far),
        pack_sum,
    ):
        digest.update(part)
        yield part
    yield digest.digest()


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
