"""Fingerprints of secrets: find a secret in a text without knowing it.

Of each spelling of a secret they hold the length and a salted hash, which its finder compares with
each window of that length; and eight bits of its beginning, which say where a comparison pays.
"""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b, shake_256
from typing import NamedTuple

from uwf_git.engine.masking import unwrap
from uwf_git.engine.secret_forms import find_forms

SALT_BYTES = 16

_HASH_BYTES = 16

# No spelling of a secret is shorter (masking.py).
_BEGINNING = 8


class Fingerprint(NamedTuple):
    """What is known of one spelling of a secret."""

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
    """Return the fingerprints of *secrets*, in every spelling."""
    forms = {form.encode(errors="surrogateescape") for form in find_forms(tuple(secrets))}
    prints = (
        Fingerprint(_hash_beginnings(form[:_BEGINNING], salt)[0], len(form), _hash(form, salt))
        for form in forms
        if len(form) >= _BEGINNING
    )
    return Fingerprints(salt, frozenset(prints))


def find_texts(data: bytes, fingerprints: Fingerprints) -> tuple[str, ...]:
    """Return the texts in *data* that have one of *fingerprints*, also where lines cut them."""
    if not fingerprints.prints:
        return ()
    joined = unwrap(data.decode(errors="surrogateescape"))
    found = _find(data, fingerprints)
    if joined.breaks:
        found |= _find(joined.text.encode(errors="surrogateescape"), fingerprints)
    return tuple(sorted(each.decode(errors="surrogateescape") for each in found))


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


def _hash(form: bytes, salt: bytes) -> str:
    return blake2b(form, key=salt, digest_size=_HASH_BYTES).hexdigest()
