"""Digests: the formula for the name of a node.

Source: json-cas; name = Crockford13(XXH64(ascii(type) + CBOR(payload))), seed 0, without the type
for a self-typed node. XXH64 is not collision-resistant: two payloads under one name are an error
(store/nodes/tree.py), never a choice.
"""

from typing import Any

import xxhash

from uwf_git.model.canonical import canonical, encode_canonical
from uwf_git.model.names import NodeHash, encode_u64


def typed_hash(type_hash: NodeHash, payload: Any) -> NodeHash:
    return canonical_hash(type_hash, canonical(payload))


def self_typed_hash(payload: Any) -> NodeHash:
    return canonical_hash(None, canonical(payload))


def canonical_hash(type_hash: NodeHash | None, payload: Any) -> NodeHash:
    """Return the hash of a canonical payload with this type; None: the node is its own type."""
    prefix = b"" if type_hash is None else type_hash.encode("ascii")
    return NodeHash(encode_u64(xxhash.xxh64_intdigest(prefix + encode_canonical(payload))))
