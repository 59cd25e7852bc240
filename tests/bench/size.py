"""Size: what a step leaves on the disk.

Owns: counting bytes of git objects, and the project's limits for them.
Knows nothing of: clocks. Always true: directories are not counted, for they do not grow with
the steps once all 256 are there.
"""

import os
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from bench.deep import Bench
from bench.report import Limit, Row, Table

_BLOCK_BYTES = 512
_MOST_BYTES = ((1_000, 4_500), (10_000, 8_000))
"""To which depth a step may take how much."""


class ObjectFile(NamedTuple):
    """A loose object."""

    kind: str
    size: int
    allocated: int


def measure_size(bench: Bench) -> list[Table]:
    """Count the bytes a step of small output takes, loose and packed."""
    rows = []
    for depth in bench.scale.large:
        rows.append(_loose(bench, depth))
        rows.append(_packed(bench, depth))
    return [Table("bytes on disk per step of 75 bytes of output", rows)]


def _loose(bench: Bench, depth: int) -> Row:
    objects = os.path.join(bench.thread_at(depth).store.path, "objects")
    files, sizes, allocated = 0, Counter[str](), 0
    for file in _loose_objects(objects):
        files += 1
        sizes[file.kind] += file.size
        allocated += file.allocated
    figures: dict[str, float | None] = {
        "bytes": sizes.total() / depth,
        "blob_bytes": sizes["blob"] / depth,
        "tree_bytes": sizes["tree"] / depth,
        "commit_bytes": sizes["commit"] / depth,
        "objects": files / depth,
        "allocated_bytes": allocated / depth,
    }
    limits = [Limit("bytes", most) for deepest, most in _MOST_BYTES if depth <= deepest][:1]
    return Row(f"depth {depth:,}, loose", figures, limits)


def _packed(bench: Bench, depth: int) -> Row:
    name = f"depth {depth:,}, after git gc"
    thread = bench.packed_thread_at(depth)
    if thread is None:
        return Row(name, {}, failure="there is no git")
    found = [
        os.stat(os.path.join(directory, file))
        for directory, _, files in os.walk(os.path.join(thread.store.path, "objects"))
        for file in files
    ]
    figures: dict[str, float | None] = {
        "bytes": sum(each.st_size for each in found) / depth,
        "allocated_bytes": sum(each.st_blocks for each in found) * _BLOCK_BYTES / depth,
    }
    return Row(name, figures)


def _loose_objects(objects: str) -> Iterator[ObjectFile]:
    for directory in os.scandir(objects):
        if len(directory.name) == len("ab"):
            for entry in os.scandir(directory):
                found = entry.stat()
                yield ObjectFile(_kind(entry.path), found.st_size, found.st_blocks * _BLOCK_BYTES)


def _kind(path: str) -> str:
    with open(path, "rb") as file:
        beginning = zlib.decompressobj().decompress(file.read(1000), 10)
    return beginning.partition(b" ")[0].decode()
