"""Read nodes by hand: rows, types, `json-cas get`, `cat`, `has`, `refs` and `walk`."""

import binascii
import json
from base64 import b64decode
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.builtin import BUILTIN_NODES, BYTES, META, TEXT
from uwf_git.model.digest import self_typed_hash, typed_hash
from uwf_git.model.event_words import first_line
from uwf_git.model.names import NodeHash, fold, is_node_hash, parse_node_prefix
from uwf_git.model.node import Node
from uwf_git.store.lookup.lookup import NodeLookup, NoSuchNode
from uwf_git.store.store import Store

# Find the schema node of a type by name or hash.
#
# A schema is a meta-schema, or a node whose type is a meta-schema.

BUILTIN_TYPES: dict[str, NodeHash] = {
    node.payload["title"]: node.hash for node in BUILTIN_NODES if node.hash != META
}
"""The built-in schemas by their names: ``Text``, ``Role``, …"""


def find_plain_type(text: str) -> NodeHash | None:
    """Return the type that *text* names without a store: a built-in name, or a whole hash."""
    if text in BUILTIN_TYPES:
        return BUILTIN_TYPES[text]
    folded = fold(text)
    return NodeHash(folded) if is_node_hash(folded) else None


def resolve_type(lookup: NodeLookup, text: str) -> NodeHash:
    """Find the type *text*: a built-in name, a hash, or a unique prefix of a hash."""
    return find_plain_type(text) or lookup.resolve(parse_node_prefix(text))


def get_schema(lookup: NodeLookup, name: NodeHash) -> Node:
    node = lookup.get_type(name)
    if not is_schema(lookup, node):
        raise Refused(
            f"node {node.hash} is not a schema: it is of type {node.type}",
            code="not-a-schema",
            hint="`json-cas schema list` names the schemas; `json-cas schema put FILE` adds one",
            node=node.hash,
            type=node.type,
        )
    return node


def is_schema(lookup: NodeLookup, node: Node) -> bool:
    if node.is_self_typed:
        return True
    try:
        return lookup.get_type(node.type).is_self_typed
    except NoSuchNode:
        return False


def hash_payload(
    type_text: str | None, payload: Any, *, open_store: Callable[[], Store]
) -> NodeHash:
    """Return the name of a node with *payload*; *type_text* None is for a meta-schema."""
    if type_text is None:
        return self_typed_hash(payload)
    type_hash = find_plain_type(type_text) or resolve_type(NodeLookup(open_store()), type_text)
    return typed_hash(type_hash, payload)


# Rows: a node in one line; a missing or damaged node is a row that says so.

_LONGEST = 72
# The fields that name most nodes, the first present one counts.
_NAMES = ("title", "name", "role", "command", "prompt")


class NodeRow(NamedTuple):
    hash: NodeHash
    type: NodeHash | None
    """None if the node cannot be read."""

    type_name: str | None
    """The title of its schema; None without a title, or if the schema cannot be read."""

    summary: str
    """One line of the payload; "" if the node cannot be read."""

    problem: str | None = None
    """Why the node cannot be read; None if it can."""


def build_row(lookup: NodeLookup, name: NodeHash) -> tuple[NodeRow, Node | None]:
    try:
        node = lookup.find(name)
    except StoreDamaged as error:
        return NodeRow(name, None, None, "", error.message), None
    if node is None:
        return NodeRow(name, None, None, "", NoSuchNode(name).message), None
    return NodeRow(name, node.type, find_type_name(lookup, node), summarize(node)), node


def find_title(payload: Any) -> str | None:
    title = payload.get("title") if isinstance(payload, dict) else None
    return " ".join(title.split()) or None if isinstance(title, str) else None


def find_type_name(lookup: NodeLookup, node: Node) -> str | None:
    """Return the title of the schema of *node*; None without a title, or if it cannot be read."""
    try:
        return find_title(lookup.get_type(node.type).payload)
    except (NoSuchNode, StoreDamaged):
        return None


def summarize(node: Node) -> str:
    return _short(_words(node.payload))


def _words(payload: Any) -> str:
    if isinstance(payload, str):
        return first_line(payload)
    if isinstance(payload, dict):
        for key in _NAMES:
            value = payload.get(key)
            if isinstance(value, str) and first_line(value):
                return first_line(value)
    # Stop after one line: a large payload need not be rendered whole.
    parts = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": ")).iterencode(payload)
    text = ""
    for part in parts:
        text += part
        if len(text) > _LONGEST:
            break
    return text


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


# `json-cas get`, `cat`, `has`, `refs` and `walk`: read nodes.
#
# *text* is a hash or a unique prefix. A missing or damaged node on a walk is a row that says so.


class Reached(NamedTuple):
    depth: int
    """The length of the shortest path of references."""

    parent: NodeHash | None
    """The node through which it was reached first; None for the start of the walk."""

    node: NodeRow


def walk_nodes(store: Store, text: str) -> list[Reached]:
    """List the node *text* and all nodes that it reaches, each once, nearest first."""
    lookup = NodeLookup(store)
    first = lookup.get(lookup.resolve(parse_node_prefix(text))).hash
    reached: list[Reached] = []
    seen = {first}
    waiting: deque[tuple[int, NodeHash | None, NodeHash]] = deque([(0, None, first)])
    while waiting:
        depth, parent, name = waiting.popleft()
        row, node = build_row(lookup, name)
        reached.append(Reached(depth, parent, row))
        for target in [] if node is None else _targets(lookup, node):
            if target not in seen:
                seen.add(target)
                waiting.append((depth + 1, name, target))
    return reached


def _targets(lookup: NodeLookup, node: Node) -> list[NodeHash]:
    try:
        return lookup.list_references(node)
    except StoreDamaged:
        # Its type is damaged; that node's own row says so.
        return [node.type]


class Reference(NamedTuple):
    as_type: bool

    target: NodeRow


def list_references(store: Store, text: str) -> list[Reference]:
    """List the references of the node *text*, its type first."""
    lookup = NodeLookup(store)
    node = lookup.get(lookup.resolve(parse_node_prefix(text)))
    return [
        Reference(target == node.type, build_row(lookup, target)[0])
        for target in lookup.list_references(node)
    ]


class Presence(NamedTuple):
    hash: str
    """Its name; of an absent node, the text that was given."""

    exists: bool


def has_node(store: Store, text: str) -> Presence:
    prefix = parse_node_prefix(text)
    lookup = NodeLookup(store)
    try:
        name = lookup.resolve(prefix)
    except NoSuchNode:
        return Presence(prefix, exists=False)
    return Presence(name, exists=lookup.find(name) is not None)


class FoundNode(NamedTuple):
    node: Node
    type_name: str | None


def get_node(store: Store, text: str) -> FoundNode:
    lookup = NodeLookup(store)
    node = lookup.get(lookup.resolve(parse_node_prefix(text)))
    return FoundNode(node, find_type_name(lookup, node))


class Content(NamedTuple):
    payload: Any
    raw: bytes | None
    """The bytes of a Text or Bytes node; None for any other node."""


def cat_node(store: Store, text: str) -> Content:
    node = get_node(store, text).node
    return Content(node.payload, _raw(node))


def _raw(node: Node) -> bytes | None:
    if not isinstance(node.payload, str):
        return None
    if node.type == TEXT:
        return node.payload.encode()
    if node.type == BYTES:
        try:
            return b64decode(node.payload, validate=True)
        except (binascii.Error, ValueError):
            # The schema says base64, but validators do not decode.
            return None
    return None
