"""Fingerprints of secrets: find a secret in a text without knowing it.

A fingerprint has the length and a salted hash of the secret, with which each window of that length
is compared, and eight bits of its beginning, which say where a comparison pays. A secret has one
fingerprint, not one for each spelling: their eight bits together would tell much of its beginning.
So a text is searched as it is, and decoded from JSON, URLs and base64.
"""

import json
import re
from base64 import b64decode
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b, shake_256
from typing import NamedTuple

from uwf_git.engine.secret_forms import as_form, read_all

SALT_BYTES = 16

_HASH_BYTES = 16

# No secret is shorter (masking.py).
_BEGINNING = 8

# In base64, eight bytes have ten characters that they share with no other byte.
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{10,}")
_FROM_URL_SAFE = bytes.maketrans(b"-_", b"+/")


class Fingerprint(NamedTuple):
    """What is known of one secret."""

    beginning: int
    """Eight bits of a hash of its first eight bytes."""

    length: int
    """In bytes."""

    digest: str
    """Its salted hash."""


class Fingerprints(NamedTuple):
    """The fingerprints of several secrets."""

    salt: bytes
    prints: frozenset[Fingerprint]

    def without(self, secrets: Sequence[str]) -> "Fingerprints":
        """Return the fingerprints of other secrets than *secrets*."""
        known = take_fingerprints(secrets, self.salt)
        return self._replace(prints=self.prints - known.prints)


def take_fingerprints(secrets: Sequence[str], salt: bytes) -> Fingerprints:
    """Return the fingerprints of *secrets*; one that is too short has none."""
    values = (secret.encode(errors="surrogateescape") for secret in secrets)
    readings = {each for value in values for each in (value, read_all(value)[-1])}
    prints = (
        Fingerprint(_hash_beginnings(value[:_BEGINNING], salt)[0], len(value), _hash(value, salt))
        for value in readings
        if len(value) >= _BEGINNING
    )
    return Fingerprints(salt, frozenset(prints))


def find_secrets_in(data: bytes, fingerprints: Fingerprints) -> tuple[str, ...]:
    """Return the secrets in *data* that have one of *fingerprints*, as they are.

    They may be written in JSON, in a URL or in base64, and lines may cut them.
    """
    if not fingerprints.prints:
        return ()
    found: set[bytes] = set()
    for text in _decode(data):
        found |= _find(text, fingerprints)
        found |= _find(_decode_base64(text), fingerprints)
    return tuple(sorted(each.decode(errors="surrogateescape") for each in found))


def _decode(data: bytes) -> Iterator[bytes]:
    """Yield *data* and its readings; as forms write them, a plus in them is a space."""
    for reading in read_all(data):
        yield reading
        if b"+" in reading:
            yield as_form(reading)


def _decode_base64(text: bytes) -> bytes:
    """Return what the words of *text* encode, whichever of four characters a group begins with."""
    parts = []
    for word in _BASE64.findall(text):
        plain = word.translate(_FROM_URL_SAFE)
        for start in range(4):
            group = plain[start:]
            parts.append(b64decode(group + b"A" * (-len(group) % 4)))
    return b"\0".join(parts)


def format_fingerprints(fingerprints: Fingerprints) -> str:
    """Return *fingerprints* as a JSON document."""
    return json.dumps({"salt": fingerprints.salt.hex(), "prints": sorted(fingerprints.prints)})


def parse_fingerprints(document: str) -> Fingerprints:
    """Return the fingerprints in a document of ``format_fingerprints``.

    Raises:
        ValueError, KeyError, TypeError: it is not such a document.
    """
    value = json.loads(document)
    prints = (Fingerprint(bytes([b])[0], int(n), str(digest)) for b, n, digest in value["prints"])
    return Fingerprints(bytes.fromhex(value["salt"]), frozenset(prints))


def _find(data: bytes, fingerprints: Fingerprints) -> set[bytes]:
    salt, prints = fingerprints
    by_beginning = defaultdict(set)
    for each in prints:
        by_beginning[each.beginning].add((each.length, each.digest))
    beginnings = _hash_beginnings(data, salt)
    return {
        data[place : place + length]
        for place in _find_places(beginnings, by_beginning)
        for length, digest in by_beginning[beginnings[place]]
        if place + length <= len(data) and _hash(data[place : place + length], salt) == digest
    }


def _find_places(beginnings: bytes, wanted: Collection[int]) -> Iterator[int]:
    pattern = b"[%s]" % b"".join(re.escape(bytes([each])) for each in wanted)
    return (found.start() for found in re.finditer(pattern, beginnings))


def _hash_beginnings(data: bytes, salt: bytes) -> bytes:
    """Return a hash of one byte of each eight bytes in *data*, by the place where they begin.

    The hash is the exclusive or of a table's value for each byte (tabulation hashing), which long
    integers have for all places at once.
    """
    size = len(data) - _BEGINNING + 1
    if size <= 0:
        return b""
    total = 0
    for offset, table in enumerate(_build_tables(salt)):
        total ^= int.from_bytes(data[offset : offset + size].translate(table), "big")
    return total.to_bytes(size, "big")


@lru_cache(maxsize=8)
def _build_tables(salt: bytes) -> tuple[bytes, ...]:
    return tuple(shake_256(salt + bytes([each])).digest(256) for each in range(_BEGINNING))


def _hash(value: bytes, salt: bytes) -> str:
    return blake2b(value, key=salt, digest_size=_HASH_BYTES).hexdigest()
