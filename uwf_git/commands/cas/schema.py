"""`json-cas schema` and `json-cas verify`: schemas, and nodes checked against them."""

from collections.abc import Callable
from typing import Any, NamedTuple

from uwf_git.commands.caller import Caller
from uwf_git.commands.cas.put import PutNode, find_problems, put_payload
from uwf_git.commands.cas.read import find_title, get_schema, is_schema, resolve_type
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.builtin import BUILTIN, BUILTIN_NODES, META
from uwf_git.model.canonical import canonical
from uwf_git.model.names import NodeHash, parse_node_prefix
from uwf_git.model.node import Node
from uwf_git.model.problem import Problem
from uwf_git.store.lookup.cas_nodes import NODES_REF, list_nodes
from uwf_git.store.lookup.lookup import NodeLookup, NoSuchNode
from uwf_git.store.lookup.roots import NodeRoot, open_root
from uwf_git.store.store import Store

# `json-cas schema`: list, get, put schemas, and validate nodes.
#
# The list has the built-in schemas and schemas put by hand, not the schemas of roles in workflows.


class SchemaRow(NamedTuple):
    hash: NodeHash
    title: str | None

    builtin: bool
    problem: str | None = None
    """Why the node cannot be read; such a node may be no schema."""


def list_schemas(store: Store, *, limit: int | None = None) -> list[SchemaRow]:
    """List the built-in schemas, then the others by title; a damaged node gets a row as well."""
    rows = [SchemaRow(each.hash, find_title(each.payload), builtin=True) for each in BUILTIN_NODES]
    by_hand = open_root(store, NODES_REF)
    lookup = NodeLookup(store)
    others: list[SchemaRow] = []
    for name in list_nodes(store):
        if name not in BUILTIN and by_hand is not None:
            others += _rows(by_hand, lookup, name)
    others.sort(key=lambda row: (row.title is None, row.title or "", row.hash))
    return [*rows, *others][:limit]


def _rows(by_hand: NodeRoot, lookup: NodeLookup, name: NodeHash) -> list[SchemaRow]:
    try:
        node = by_hand.find(name)
        if node is None or not is_schema(lookup, node):
            return []
    except StoreDamaged as error:
        return [SchemaRow(name, None, builtin=False, problem=error.message)]
    return [SchemaRow(name, find_title(node.payload), builtin=False)]


class NodeValidation(NamedTuple):
    schema: NodeHash
    problems: tuple[Problem, ...]


def validate_node(
    store: Store, text: str, read_value: Callable[[], Any] | None = None
) -> NodeValidation:
    """Check the node *text* against its type, or what *read_value* returns against it."""
    lookup = NodeLookup(store)
    name = resolve_type(lookup, text)
    if read_value is not None:
        schema = get_schema(lookup, name)
        payload = canonical(read_value())
    else:
        node = lookup.get(name)
        schema = get_schema(lookup, node.type)
        payload = node.payload
    return NodeValidation(schema.hash, tuple(find_problems(schema, payload)))


def put_schema(store: Store, caller: Caller, schema: Any) -> PutNode:
    return put_payload(store, caller, META, schema)


def get_schema_payload(store: Store, text: str) -> Any:
    """Return the JSON Schema *text*: a built-in name, a hash, or a unique prefix of a hash."""
    lookup = NodeLookup(store)
    return get_schema(lookup, resolve_type(lookup, text)).payload


# `json-cas verify`: hash every copy of a node again, and check its type and references.
#
# Threads are checked by `uwf verify`.


class NodeFinding(NamedTuple):
    node: NodeHash
    message: str
    ref: str | None = None
    """The ref whose copy is damaged; None if the problem is in the node itself."""

    path: str | None = None
    """The place in the payload; None for the whole node."""


class NodeVerification(NamedTuple):
    checked: tuple[NodeHash, ...]
    findings: tuple[NodeFinding, ...]


def verify_nodes(store: Store, texts: list[str]) -> NodeVerification:
    lookup = NodeLookup(store)
    names = [lookup.resolve(parse_node_prefix(text)) for text in texts]
    checked = list(dict.fromkeys(names))
    findings = [finding for name in checked for finding in _verify(lookup, name)]
    return NodeVerification(tuple(checked), tuple(findings))


def _verify(lookup: NodeLookup, name: NodeHash) -> list[NodeFinding]:
    node = BUILTIN.get(name)
    findings: list[NodeFinding] = []
    for root in lookup.roots():
        try:
            node = root.find(name) or node
        except StoreDamaged as error:
            # A tree that cannot be read may not have had this node.
            finding = NodeFinding(name, error.message, ref=root.ref)
            # Several versions of a workflow may have the same file.
            if root.lists(name) and finding not in findings:
                findings.append(finding)
    if node is not None:
        findings += _verify_type(lookup, node) + _verify_references(lookup, node)
    elif not findings:
        raise NoSuchNode(name)
    return findings


def _verify_type(lookup: NodeLookup, node: Node) -> list[NodeFinding]:
    try:
        type_node = node if node.is_self_typed else lookup.get_type(node.type)
        if not is_schema(lookup, type_node):
            return [NodeFinding(node.hash, f"its type {node.type} is not a schema")]
        problems = find_problems(type_node, node.payload)
    except NoSuchNode:
        return []  # reported as a reference
    except (StoreDamaged, Refused) as error:
        return [NodeFinding(node.hash, f"it cannot be checked against its type: {error.message}")]
    return [
        NodeFinding(node.hash, f"it breaks its schema: {each.message}", path=each.path)
        for each in problems
    ]


def _verify_references(lookup: NodeLookup, node: Node) -> list[NodeFinding]:
    findings: list[NodeFinding] = []
    try:
        targets = lookup.list_references(node)
    except StoreDamaged:
        return []  # reported with the type
    for target in targets:
        what = "its type" if target == node.type else "it refers to"
        try:
            if lookup.find(target) is None:
                findings.append(
                    NodeFinding(node.hash, f"{what} {target}, which is not in this store")
                )
        except StoreDamaged as error:
            findings.append(NodeFinding(node.hash, f"{what} {target}, but {error.message}"))
    return findings
