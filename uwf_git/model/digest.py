"""Digests: how a node gets its name.

Owns: the formula. Knows nothing of: what is hashed, or where it is kept.
Source: json-cas; name = Crockford13(XXH64(ascii(type) + CBOR(payload))), seed 0, and for a
self-typed node no type. XXH64 guards against accidents, not against an adversary: whoever
meets one name with two payloads must stop (see store/node_tree.py), never choose.
"""

from typing import Any

import xxhash

from uwf_git.model.canonical import encode
from uwf_git.model.crockford import encode_u64
from uwf_git.model.node_hash import NodeHash


def typed_hash(type_hash: NodeHash, payload: Any) -> NodeHash:
    """Name the node that has this type and payload.

    Raises:
        NotCanonical: no node can hold the payload.
    """
    return _digest(type_hash.encode("ascii") + encode(payload))


def self_typed_hash(payload: Any) -> NodeHash:
    """Name the self-typed node (a meta-schema) that has this payload.

    Raises:
        NotCanonical: no node can hold the payload.
    """
    return _digest(encode(payload))


def _digest(content: bytes) -> NodeHash:
    return NodeHash(encode_u64(xxhash.xxh64_intdigest(content)))
