"""Check that an image holds all objects that its refs need."""

import hashlib
import re
import zlib
from binascii import hexlify
from collections.abc import Iterator
from functools import cache

from dulwich.objects import Commit, ShaFile, Tree
from store.power import Image

from uwf_git.store.objects.pack_file import name_object, read_entry_head

KINDS = {b"commit": 1, b"tree": 2, b"blob": 3}
OID = re.compile(rb"[0-9a-f]{40}\n")


def refs_in(image: Image) -> Iterator[tuple[str, bytes]]:
    """Yield the refs, packed ones first: a loose one of the same name counts."""
    for line in (image.find("packed-refs") or b"").splitlines(keepends=True):
        if not line.startswith(b"#"):
            oid, _space, packed = line.partition(b" ")
            yield packed.strip().decode(), oid + b"\n"
    for name in image.list("refs"):
        if not name.endswith(".lock"):
            yield name, image.find(name) or b""


def check_refs(image: Image, refs: dict[str, bytes]) -> None:
    whole: set[bytes] = set()
    packed = find_packed(image)
    waiting = []
    for name, content in refs.items():
        assert OID.fullmatch(content), f"{name} holds {content!r}"
        waiting.append((name, content.strip()))
    while waiting:
        name, oid = waiting.pop()
        if oid not in whole:
            whole.add(oid)
            found = packed.get(oid) or find_loose(image, oid.decode())
            assert found, f"{name} is there, but not all of {oid.decode()}"
            waiting += [(name, each) for each in needs(oid, *found)]


def find_loose(image: Image, oid: str) -> tuple[int, bytes] | None:
    content = image.find(f"objects/{oid[:2]}/{oid[2:]}")
    if not content:
        return None
    header, _null, body = zlib.decompress(content).partition(b"\0")
    return KINDS[header.split()[0]], body


def find_packed(image: Image) -> dict[bytes, tuple[int, bytes]]:
    """Return the objects of all packs that git would read."""
    found: dict[bytes, tuple[int, bytes]] = {}
    for name in image.list("objects/pack"):
        index = image.find(name)
        pack = image.find(name.removesuffix(".idx") + ".pack")
        if name.endswith(".idx") and index and pack and is_whole(pack) and is_whole(index):
            assert index[-40:-20] == pack[-20:], f"{name} is of another pack"
            found |= unpack(pack)
    return found


def is_whole(content: bytes) -> bool:
    return content[-20:] == hashlib.sha1(content[:-20]).digest()


@cache
def unpack(pack: bytes) -> dict[bytes, tuple[int, bytes]]:
    """Return the objects of a pack without deltas."""
    found, at = {}, 12
    for _object in range(int.from_bytes(pack[8:12], "big")):
        kind, _size, begin = read_entry_head(pack[at : at + 64])
        stream = zlib.decompressobj()
        content = stream.decompress(pack[at + begin :])
        at = len(pack) - len(stream.unused_data)
        found[hexlify(name_object(kind, content))] = kind, content
    return found


@cache
def needs(oid: bytes, kind: int, body: bytes) -> list[bytes]:
    obj = ShaFile.from_raw_string(kind, body)
    assert obj.id == oid
    if isinstance(obj, Commit):
        return [obj.tree, *obj.parents]
    return [entry.sha for entry in obj.items()] if isinstance(obj, Tree) else []
