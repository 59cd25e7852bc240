"""Packs that unfold to far more than they hold, or claim to."""

import hashlib
import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

COMMIT, TREE, BLOB, OFS_DELTA, REF_DELTA = 1, 2, 3, 6, 7
MIB = 1024 * 1024


class Entry(NamedTuple):
    """One object of a pack, as it is written there."""

    kind: int
    content: bytes
    """Its content, or a delta."""

    base: int | bytes = 0
    """How many entries before the delta its base is, or the name of that."""

    claimed: int | None = None
    """The size that its head tells, where it lies."""


def pack(entries: Sequence[Entry], *, count: int | None = None) -> bytes:
    """Write a pack of *entries*, which claims to hold *count* objects."""
    told = len(entries) if count is None else count
    written = bytearray(b"PACK" + struct.pack(">II", 2, told))
    offsets: list[int] = []
    for number, entry in enumerate(entries):
        offsets.append(len(written))
        size = len(entry.content) if entry.claimed is None else entry.claimed
        written += head(entry.kind, size)
        if isinstance(entry.base, bytes):
            written += entry.base
        elif entry.kind == OFS_DELTA:
            written += distance(offsets[number] - offsets[number - entry.base])
        written += zlib.compress(entry.content, 9)
    return bytes(written) + hashlib.sha1(written, usedforsecurity=False).digest()


def head(kind: int, size: int) -> bytes:
    """Write the head of an entry."""
    first, size = kind << 4 | size & 15, size >> 4
    return bytes([first | 128]) + number(size) if size else bytes([first])


def number(value: int) -> bytes:
    """Write a number of seven bits a byte, lowest first."""
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    return bytes(written)


def distance(value: int) -> bytes:
    """Write how far back a base is."""
    written = [value & 127]
    while value := value >> 7:
        value -= 1
        written.insert(0, value & 127 | 128)
    return bytes(written)


def name_of(kind: str, content: bytes) -> bytes:
    """Return the name of an object."""
    head = f"{kind} {len(content)}\0".encode()
    return hashlib.sha1(head + content, usedforsecurity=False).digest()


def insert(before: int, text: bytes) -> bytes:
    """Return a delta that makes *text* (at most 127 bytes) out of anything of *before* bytes."""
    return number(before) + number(len(text)) + bytes([len(text)]) + text


def repeat(before: int, times: int, tail: bytes = b"") -> bytes:
    """Return a delta that copies the first 64 KiB of *before* bytes *times*, and adds *tail*."""
    copies = b"\x80" * times  # offset 0, size 0 means 64 KiB
    added = bytes([len(tail)]) + tail if tail else b""
    return number(before) + number(times * 65536 + len(tail)) + copies + added


def delta_bomb() -> bytes:
    """Return a pack of some 70 KB with one object of 4 GiB."""
    return pack([Entry(BLOB, b"\0" * 65536), Entry(OFS_DELTA, repeat(65536, 65536), 1)])


def many_large(count: int = 140) -> bytes:
    """Return a small pack of *count* objects of 31 MiB, each allowed by itself."""
    base = Entry(BLOB, b"\0" * 65536)
    deltas = [Entry(OFS_DELTA, repeat(65536, 496, b"%d" % at), at) for at in range(1, count)]
    return pack([base, *deltas])


def deep_chain(depth: int) -> bytes:
    """Return a pack with a chain of so many deltas."""
    entries = [Entry(BLOB, b"0" * 8)]
    entries += [Entry(OFS_DELTA, insert(8, b"%08d" % at), 1) for at in range(1, depth + 1)]
    return pack(entries)


def large_chain(depth: int) -> bytes:
    """Return a pack with a chain of so many deltas, each of which makes 31 MiB."""
    entries = [Entry(BLOB, b"\0" * 65536)]
    before = 65536
    for at in range(depth):
        entries.append(Entry(OFS_DELTA, repeat(before, 496, b"%04d" % at), 1))
        before = 496 * 65536 + 4
    return pack(entries)
