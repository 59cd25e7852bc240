"""Encode an object as a delta against another one, by the tree entries or lines that both have.

Not by dulwich, whose encoder compares byte by byte in Python: some milliseconds an object. Two
versions of a tree or of a JSON file share whole entries or lines, which a dict finds.
Source: gitformat-pack(5), "Deltified representation".
"""

import re
from collections.abc import Sequence

_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_OID_BYTES = 20
_MOST_COPIED = 0xFFFF
_MOST_INSERTED = 127


def split_tree(content: bytes) -> list[bytes]:
    """Split a git tree into its entries.

    Raises:
        ValueError: it is not a tree.
    """
    entries, at = [], 0
    while at < len(content):
        end = content.index(b"\0", at) + 1 + _OID_BYTES
        entries.append(content[at:end])
        at = end
    return entries


def split_lines(content: bytes) -> list[bytes]:
    """Split a file into its lines, each with its newline."""
    return _LINE.findall(content)


def make_delta(base: Sequence[bytes], target: Sequence[bytes]) -> bytes:
    """Encode *target* as a delta against *base*; both are lists of the pieces of an object."""
    whole = b"".join(base)
    places: dict[bytes, int] = {}
    at = 0
    for piece in base:
        places.setdefault(piece, at)
        at += len(piece)
    out = bytearray(_size(len(whole)) + _size(sum(map(len, target))))
    begin = end = 0
    new = bytearray()
    for piece in target:
        if begin < end and whole.startswith(piece, end):
            end += len(piece)
            continue
        out += _copy(begin, end)
        begin = end = 0
        place = places.get(piece)
        if place is None:
            new += piece
        else:
            out += _insert(new)
            new.clear()
            begin, end = place, place + len(piece)
    return bytes(out + _copy(begin, end) + _insert(new))


def _size(size: int) -> bytes:
    out = bytearray()
    while size > 0x7F:  # noqa: PLR2004 - seven bits per byte; the eighth says that more follow
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    return bytes(out)


def _copy(begin: int, end: int) -> bytes:
    out = bytearray()
    while begin < end:
        size = min(end - begin, _MOST_COPIED)
        command, operands = 0x80, bytearray()
        for number, byte in enumerate(begin.to_bytes(4, "little") + size.to_bytes(2, "little")):
            if byte:
                command |= 1 << number
                operands.append(byte)
        out += bytes([command]) + operands
        begin += size
    return bytes(out)


def _insert(new: bytes | bytearray) -> bytes:
    out = bytearray()
    for at in range(0, len(new), _MOST_INSERTED):
        part = new[at : at + _MOST_INSERTED]
        out += bytes([len(part)]) + part
    return bytes(out)
