"""Digests: how a node gets its name.

Owns: the formula. Knows nothing of: what is hashed, or where it is kept.
Source: json-cas; name = Crockford13(XXH64(ascii(type) + CBOR(payload))), seed 0, and for a
self-typed node no type. XXH64 guards against accidents, not against an adversary: whoever
meets one name with two payloads must stop (see store/node_tree.py), never choose.
"""

from typing import Any

import xxhash

from uwf_git.model.canonical import canonical, encode_canonical
from uwf_git.model.crockford import encode_u64
from uwf_git.model.node_hash import NodeHash


def typed_hash(type_hash: NodeHash, payload: Any) -> NodeHash:
    """Name the node that has this type and payload.

    Raises:
        NotCanonical: no node can hold the payload.
    """
    return canonical_hash(type_hash, canonical(payload))


def self_typed_hash(payload: Any) -> NodeHash:
    """Name the self-typed node (a meta-schema) that has this payload.

    Raises:
        NotCanonical: no node can hold the payload.
    """
    return canonical_hash(None, canonical(payload))


def canonical_hash(type_hash: NodeHash | None, payload: Any) -> NodeHash:
    """Name the node that has this type, None for its own, and a payload in canonical form."""
    prefix = b"" if type_hash is None else type_hash.encode("ascii")
    return NodeHash(encode_u64(xxhash.xxh64_intdigest(prefix + encode_canonical(payload))))
