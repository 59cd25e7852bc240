"""Strict files of objects: what `git fsck` says of loose objects, packs and their indexes.

Each file is read once, in pieces; an object that nothing needs counts too.
Source: gitrepository-layout(5), gitformat-pack(5), gitformat-commit-graph(5).
"""

import hashlib
import os
import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from uwf_git.store.objects.objects import BROKEN
from uwf_git.store.objects.pack_file import find_pack_problem

_FOLDER = re.compile("[0-9a-f]{2}")
_FILE = re.compile("[0-9a-f]{38}")
_CHECKED = (".pack", ".idx", ".rev", ".mtimes", ".bitmap", ".graph")
_PIECE = 1024 * 1024
_HASH_BYTES = 20
_REBUILT = (
    "git makes it anew from the objects: move the file away, then `git gc`, or "
    "`git index-pack` for the index of a pack"
)
_PACK = "copy the pack away, then `git unpack-objects -r` gives what is whole in it; or `uwf clone`"


class BadObjectFile(NamedTuple):
    name: str
    """Below objects/."""

    problem: str
    hint: str


def check_object_files(objects: str) -> Iterator[BadObjectFile]:
    yield from _check_loose(objects)
    for folder in ("pack", "info", "info/commit-graphs"):
        for file in _list(os.path.join(objects, folder)):
            name = f"{folder}/{file}"
            try:
                problem = _find_problem(os.path.join(objects, name))
            except FileNotFoundError:
                continue  # git has repacked since
            if problem is not None:
                yield BadObjectFile(name, problem, _PACK if name.endswith(".pack") else _REBUILT)


def _check_loose(objects: str) -> Iterator[BadObjectFile]:
    for folder in filter(_FOLDER.fullmatch, _list(objects)):
        for file in filter(_FILE.fullmatch, _list(os.path.join(objects, folder))):
            try:
                with open(os.path.join(objects, folder, file), "rb") as opened:
                    problem = _find_loose_problem(opened, folder + file)
            except FileNotFoundError:
                continue
            if problem is not None:
                yield BadObjectFile(f"{folder}/{file}", problem, BROKEN.format(folder, file))


def _list(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            # A pipe would never end.
            return sorted(each.name for each in entries if each.is_file() or each.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _find_loose_problem(file: BinaryIO, oid: str) -> str | None:
    stream, digest = zlib.decompressobj(), hashlib.sha1(usedforsecurity=False)
    try:
        while not stream.eof:
            more = stream.unconsumed_tail or file.read(_PIECE)
            if not more:
                return "is cut short"
            digest.update(stream.decompress(more, _PIECE))
    except zlib.error as error:
        return f"cannot be unpacked: {error}"
    if stream.unused_data or file.read(1):
        return "has garbage behind the object"
    return None if digest.hexdigest() == oid else f"holds the object {digest.hexdigest()}"


def _find_problem(path: str) -> str | None:
    if not path.endswith((*_CHECKED, "/multi-pack-index", "/commit-graph")):
        return None
    with open(path, "rb") as file:
        digest = hashlib.sha1(usedforsecurity=False)
        left = os.fstat(file.fileno()).st_size - _HASH_BYTES
        while left > 0:
            piece = file.read(min(left, _PIECE))
            if not piece:
                return "is cut short"
            digest.update(piece)
            left -= len(piece)
        if file.read() != digest.digest():
            return "does not end with the checksum of its content: it is damaged or cut short"
    return find_pack_problem(path) if path.endswith(".pack") else None
