"""Nodes and schemas for the tests of json-cas, and ways to damage a store.

Damage is written directly into the store, as another program would do it.
"""

import itertools
from typing import Any

import seal
from dulwich.objects import Tree

from uwf_git.commands.caller import Caller
from uwf_git.commands.cas import put_payload, put_schema
from uwf_git.model.builtin import TEXT
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node, build_node
from uwf_git.store.lookup import NODES_REF, put_nodes
from uwf_git.store.nodes import TREE_MODE, add_nodes
from uwf_git.store.objects.commit import CommitDraft, Signing, write_commit
from uwf_git.store.store import Store

NOWHERE = NodeHash("8FWKR3TN5V1QA")
"""A node that no store has."""

PERSON: dict[str, Any] = {
    "title": "Person",
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "friend": {"type": "string", "format": "cas_ref"},
        "note": {"type": "object", "format": "cas_ref"},
    },
    "required": ["name"],
    "additionalProperties": False,
}
"""A person may have a friend (a reference as json-cas writes it) and a note (as uwf does)."""

ENDLESS: dict[str, Any] = {"title": "Endless", "type": "string", "pattern": "^(a+)+$"}
"""A schema that takes for ever to say no to `a…ab`."""

TWINS = (
    f"One name, two te.{'xts':32}{'lcyuef c':32}",
    f"One name, two te.{'sqdytdmk':32}{'@Lad2:tM':32}",
)
"""Two texts with one name. XXH64 is no cryptographic hash: such pairs are found in a second."""

SIGNING = Signing(b"T <t@example.com>", b"T <t@example.com>", seal.START_MS)


def new_caller() -> Caller:
    """Return a caller with a clock that begins at `seal.START_MS` and steps by seconds."""
    return Caller(itertools.count(seal.START_MS, 1000).__next__, {}, "/")


def put_person(store: Store, **fields: Any) -> NodeHash:
    """Put a person, with the schema."""
    caller = new_caller()
    schema = put_schema(store, caller, PERSON).hash
    return put_payload(store, caller, schema, fields).hash


def add_unchecked(store: Store, type_hash: NodeHash, payload: Any) -> NodeHash:
    """Keep a node that `put` would refuse: its name is right, and nothing else need be."""
    node = build_node(type_hash, payload, timestamp=0)
    put_nodes(store, [node], SIGNING)
    return node.hash


def add_notes(store: Store, count: int) -> list[NodeHash]:
    """Keep *count* text nodes; of forty, several begin with the same symbol."""
    notes = [build_node(TEXT, f"note {number}", timestamp=0) for number in range(count)]
    put_nodes(store, notes, SIGNING)
    return [note.hash for note in notes]


def add_misnamed(store: Store, name: NodeHash, type_hash: NodeHash, payload: Any) -> None:
    """Keep other content under *name* than it names."""
    put_nodes(store, [Node(name, type_hash, payload, 0)], SIGNING)


def hand_over(store: Store, ref: str) -> None:
    """Let *ref* keep all that was put by hand, in the place of refs/cas/nodes."""
    oid = store.refs.find(NODES_REF)
    assert oid is not None
    assert store.refs.create(ref, oid)
    assert store.refs.delete(NODES_REF, seen=oid)


def keep_alone(store: Store, ref: str, node: Node) -> None:
    """Make *ref* keep *node* and nothing else, not even the built-in schemas."""
    growth = add_nodes(store.objects, None, [node])
    tree = Tree()
    tree[b"nodes"] = (TREE_MODE, growth.nodes)
    draft = CommitDraft(tree, (), b"alone\n", growth.objects)
    assert store.refs.create(ref, write_commit(store.objects, draft, SIGNING))
