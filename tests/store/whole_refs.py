"""Check that an image holds all objects that its refs need."""

import hashlib
import re
import zlib
from collections.abc import Iterator
from functools import cache

from dulwich.objects import Commit, ShaFile, Tree
from store.power import Image

KINDS = {b"commit": 1, b"tree": 2, b"blob": 3}
OID = re.compile(rb"[0-9a-f]{40}\n")


def refs_in(image: Image) -> Iterator[tuple[str, bytes]]:
    for name in image.list("refs"):
        if not name.endswith(".lock"):
            yield name, image.find(name) or b""


def check_refs(image: Image, refs: dict[str, bytes]) -> None:
    whole: set[bytes] = set()
    waiting = []
    for name, content in refs.items():
        assert OID.fullmatch(content), f"{name} holds {content!r}"
        waiting.append((name, content.strip()))
    while waiting:
        name, oid = waiting.pop()
        if oid not in whole:
            whole.add(oid)
            text = oid.decode()
            found = image.find(f"objects/{text[:2]}/{text[2:]}")
            assert found, f"{name} is there, but not all of {text}"
            waiting += [(name, each) for each in needs(oid, found)]


@cache
def needs(oid: bytes, content: bytes) -> list[bytes]:
    raw = zlib.decompress(content)
    assert hashlib.sha1(raw).hexdigest().encode() == oid
    header, _null, body = raw.partition(b"\0")
    obj = ShaFile.from_raw_string(KINDS[header.split()[0]], body)
    if isinstance(obj, Commit):
        return [obj.tree, *obj.parents]
    return [entry.sha for entry in obj.items()] if isinstance(obj, Tree) else []
