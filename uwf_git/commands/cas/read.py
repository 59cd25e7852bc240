"""`json-cas get`, `cat`, `has`, `refs` and `walk`: read nodes.

*text* is a hash or a unique prefix. A missing or damaged node on a walk is a row that says so.
"""

import binascii
from base64 import b64decode
from collections import deque
from typing import Any, NamedTuple

from uwf_git.commands.cas.rows import NodeRow, build_row, find_type_name
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import BYTES, TEXT
from uwf_git.model.names import NodeHash, parse_node_prefix
from uwf_git.model.node import Node
from uwf_git.store.lookup.lookup import NodeLookup, NoSuchNode
from uwf_git.store.store import Store


class Reached(NamedTuple):
    """One node on a walk."""

    depth: int
    """The length of the shortest path of references."""

    parent: NodeHash | None
    """The node through which it was reached first; None for the start of the walk."""

    node: NodeRow


def walk_nodes(store: Store, text: str) -> list[Reached]:
    """List the node *text* and all nodes that it reaches, each once, nearest first.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode: no node has this name, or several.
        StoreDamaged: all its copies are damaged.
    """
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
    """A reference of a node."""

    as_type: bool
    """Whether it is the node's type; else it is in the payload."""

    target: NodeRow


def list_references(store: Store, text: str) -> list[Reference]:
    """List the references of the node *text*, its type first.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode: no node has this name, or several.
        StoreDamaged: all copies of it, or of its type, are damaged.
    """
    lookup = NodeLookup(store)
    node = lookup.get(lookup.resolve(parse_node_prefix(text)))
    return [
        Reference(target == node.type, build_row(lookup, target)[0])
        for target in lookup.list_references(node)
    ]


class Presence(NamedTuple):
    """Whether a node is in the store."""

    hash: str
    """Its name; of an absent node, the text that was given."""

    exists: bool


def has_node(store: Store, text: str) -> Presence:
    """Check whether any ref holds the node *text*.

    Raises:
        NotANodeHash, AmbiguousNode: no node can have this name, or several do.
        StoreDamaged: all its copies are damaged.
    """
    prefix = parse_node_prefix(text)
    lookup = NodeLookup(store)
    try:
        name = lookup.resolve(prefix)
    except NoSuchNode:
        return Presence(prefix, exists=False)
    return Presence(name, exists=lookup.find(name) is not None)


class FoundNode(NamedTuple):
    """A node, and the title of its schema."""

    node: Node
    type_name: str | None
    """None if the schema has no title, or cannot be read."""


def get_node(store: Store, text: str) -> FoundNode:
    """Return the node *text*.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode: no node has this name, or several.
        StoreDamaged: all its copies are damaged.
    """
    lookup = NodeLookup(store)
    node = lookup.get(lookup.resolve(parse_node_prefix(text)))
    return FoundNode(node, find_type_name(lookup, node))


class Content(NamedTuple):
    """The content of a node."""

    payload: Any
    raw: bytes | None
    """The bytes of a Text or Bytes node; None for any other node."""


def cat_node(store: Store, text: str) -> Content:
    """Return the content of the node *text*; it raises as ``get_node``."""
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
