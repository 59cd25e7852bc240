"""`json-cas verify`: hash every copy of a node again, and check its type and references.

Threads are checked by `uwf verify`.
"""

from typing import NamedTuple

from uwf_git.commands.cas.check import find_problems
from uwf_git.commands.cas.types import is_schema
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.builtin import BUILTIN
from uwf_git.model.names import NodeHash, parse_node_prefix
from uwf_git.model.node import Node
from uwf_git.store.lookup.lookup import NodeLookup, NoSuchNode
from uwf_git.store.store import Store


class NodeFinding(NamedTuple):
    """A problem with a node."""

    node: NodeHash
    message: str
    ref: str | None = None
    """The ref whose copy is damaged; None if the problem is in the node itself."""

    path: str | None = None
    """The place in the payload; None if it is the whole node."""


class NodeVerification(NamedTuple):
    """The outcome of a check."""

    checked: tuple[NodeHash, ...]
    findings: tuple[NodeFinding, ...]
    """Empty if the nodes are whole."""


def verify_nodes(store: Store, texts: list[str]) -> NodeVerification:
    """Check the nodes *texts*: hashes, or unique prefixes.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode: one names no node, or several.
    """
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
