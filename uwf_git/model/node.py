"""Nodes: the immutable envelope ``{type, payload, timestamp}``, named by a hash of its content."""

import json
import math
import re
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import cbor2
import xxhash

from uwf_git.errors import Refused
from uwf_git.model.names import NodeHash, encode_u64

# Canonical values: the JSON that a node can hold, and its one encoding as CBOR.
#
# Equal JSON values have equal bytes, and ``canonical`` of a canonical value is that value.
# Source: RFC 8949 section 4.2 with cborg 4.5.8's number rules, which json-cas uses: integral
# numbers up to 2**53-1 in size are integers, every other number is a 64-bit float.

MAX_SAFE_INTEGER = 2**53 - 1

# Not every JSON parser can read deeper values; json-cas's own vectors stop at 250.
MAX_NESTING = 500

# Constants, since inline tuples would be created again for each value.
_HOLDERS = (dict, list)
_LISTS = (list, tuple)
_NUMBERS = (int, float)


class NotCanonical(Refused):
    code = "not-canonical"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(
            f"the value at {path} {problem}",
            hint="nodes hold JSON: objects with string keys, lists, strings, finite numbers, "
            "true, false, null",
            path=path,
        )


def canonical(value: Any) -> Any:
    """Return *value* in its one form: 1.0 as 1, -0.0 as 0, integers beyond 2**53-1 as floats.

    Keys keep their order; only the bytes are sorted. Raises NotCanonical for NaN, infinity, a lone
    surrogate, a number no float can hold, a key that is not a string, a type JSON does not have, or
    more than 500 levels.
    """
    return _canonical(value, None, 0)


def encode(value: Any) -> bytes:
    """Encode *value* as deterministic CBOR, after ``canonical``."""
    return encode_canonical(canonical(value))


def encode_canonical(value: Any) -> bytes:
    """Encode a *value* that ``canonical`` returned; it is not checked again."""
    return cbor2.dumps(_sorted(value))


# The place of a value: the path of its container, and its key or index there. It is formatted only
# for an error: for each value of a long list below a long key that would cost hours.
_Path: TypeAlias = "tuple[_Path, str | int] | None"


def _canonical(value: Any, path: _Path, depth: int) -> Any:
    # One frame per level (no comprehensions), so that 500 levels fit Python's stack.
    if depth > MAX_NESTING:
        raise NotCanonical("$…", f"is nested more than {MAX_NESTING} levels deep")
    # Most values are short ASCII texts: this path makes reading a long thread fast.
    if type(value) is str and value.isascii():
        return value
    if isinstance(value, dict):
        fields: dict[str, Any] = {}
        for key, item in value.items():
            name = key if type(key) is str and key.isascii() else _check_key(key, path)
            fields[name] = _canonical(item, (path, name), depth + 1)
        return fields
    if isinstance(value, _LISTS):
        items: list[Any] = []
        for index, item in enumerate(value):
            items.append(_canonical(item, (path, index), depth + 1))
        return items
    return _canonical_scalar(value, path)


def _canonical_scalar(value: Any, path: _Path) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _check_text(value, path)
    if isinstance(value, _NUMBERS):
        return canonical_number(value, path)
    raise NotCanonical(_words(path), f"is a {type(value).__name__}, which JSON does not have")


def _check_key(key: Any, path: _Path) -> str:
    if not isinstance(key, str):
        raise NotCanonical(_words(path), f"has a key that is not a string: {key!r:.60}")
    return _check_text(key, path)


def canonical_number(value: float, path: _Path = None) -> int | float:
    """Return *value* as FORMAT.md writes numbers: whole ones without a point, if they are exact."""
    if isinstance(value, int):
        if abs(value) <= MAX_SAFE_INTEGER:
            return value
        try:
            return float(value)
        except OverflowError:
            raise NotCanonical(_words(path), "is a number no 64-bit float can hold") from None
    if not math.isfinite(value):
        raise NotCanonical(_words(path), f"is {value}, which JSON does not have")
    if value.is_integer() and abs(value) <= MAX_SAFE_INTEGER:
        return int(value)
    return value


def _check_text(text: str, path: _Path) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotCanonical(_words(path), "has a lone surrogate, which UTF-8 cannot hold") from None
    return text


def _words(path: _Path) -> str:
    parts: list[str] = []
    while path is not None:
        path, part = path
        parts.append(f"[{part}]" if isinstance(part, int) else f".{part:.60}")
    parts.append("$")
    return "".join(reversed(parts))


def _sorted(value: Any) -> Any:
    """Order every map by the UTF-8 length of its keys, then by their bytes."""
    if isinstance(value, dict):
        fields: dict[str, Any] = {}
        for key in _ordered(value):
            item = value[key]
            fields[key] = _sorted(item) if isinstance(item, _HOLDERS) else item
        return fields
    if isinstance(value, list):
        items: list[Any] = []
        for item in value:
            items.append(_sorted(item))  # noqa: PERF401 (one frame a level, as above)
        return items
    return value


def _ordered(keys: dict[str, Any]) -> Iterable[str]:
    if "".join(keys).isascii():
        # A character is a byte: the same order, without a call for each key.
        return sorted(sorted(keys), key=len)
    return sorted(keys, key=lambda key: (len(key.encode()), key.encode()))


# Digests: the formula for the name of a node.
#
# Source: json-cas; name = Crockford13(XXH64(ascii(type) + CBOR(payload))), seed 0, without the
# type for a self-typed node. XXH64 is not collision-resistant: two payloads under one name are an
# error (store/nodes.py, `recall` in commands/verify/nodes.py), never a choice.


def typed_hash(type_hash: NodeHash | None, payload: Any) -> NodeHash:
    """Return the hash of *payload* with this type; None: the node is its own type."""
    return canonical_hash(type_hash, canonical(payload))


def canonical_hash(type_hash: NodeHash | None, payload: Any) -> NodeHash:
    """Return the hash of a canonical payload, as ``typed_hash`` does."""
    prefix = b"" if type_hash is None else type_hash.encode("ascii")
    return NodeHash(encode_u64(xxhash.xxh64_intdigest(prefix + encode_canonical(payload))))


class Node(NamedTuple):
    """One node: a payload, its schema node, and when it was first written."""

    hash: NodeHash
    type: NodeHash
    """The hash of the schema node of the payload; a meta-schema has its own."""

    payload: Any
    """Any JSON value, in canonical form."""

    timestamp: int
    """Milliseconds since 1970. Not hashed: equal content has one name whenever it is written."""

    @property
    def is_self_typed(self) -> bool:
        """Return True for a meta-schema: its type is its own hash."""
        return self.type == self.hash


def build_node(type_hash: NodeHash | None, payload: Any, *, timestamp: int) -> Node:
    """Build a node of this type; None: a meta-schema, which is its own type."""
    value = canonical(payload)
    name = canonical_hash(type_hash, value)
    return Node(name, type_hash or name, value, timestamp)


_PLAIN_KEY = r"[^\s.\[\]\"]+"


def render_path(path: Iterable[str | int]) -> str:
    """Format a path in a JSON value: `phases[0].name`; "" is the root."""
    told = ""
    for part in path:
        if isinstance(part, int):
            told += f"[{part}]"
        elif re.fullmatch(_PLAIN_KEY, part):
            told += f".{part}" if told else part
        else:
            told += f"[{json.dumps(part, ensure_ascii=False)}]"
    return told
