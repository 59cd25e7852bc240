"""`json-cas verify`: is a node what its name says, and all it points at there.

Owns: what is looked at. Knows nothing of: threads; `uwf verify` is for those.
Always true: every copy that any ref keeps is read again and hashed, the built-in ones as well;
nothing is changed.
"""

from typing import NamedTuple

from uwf_git.commands.cas_check import find_problems
from uwf_git.commands.cas_types import is_schema
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.builtin import BUILTIN
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash, parse_node_prefix
from uwf_git.store.node_lookup import NodeLookup, NoSuchNode
from uwf_git.store.store import Store


class Finding(NamedTuple):
    """One thing that is wrong with a node."""

    node: NodeHash
    message: str
    ref: str | None = None
    """The ref whose copy is meant; None if it is the node itself."""

    path: str | None = None
    """Where in the payload; None if it is the node as a whole."""


class Verified(NamedTuple):
    """What came of a check."""

    checked: tuple[NodeHash, ...]
    findings: tuple[Finding, ...]
    """What is wrong; nothing if all is well."""


def verify_nodes(store: Store, texts: list[str]) -> Verified:
    """Check each node whose name is, or begins with, one of *texts*.

    Raises:
        NotANodeHash, NoSuchNode, AmbiguousNode: one means none, or several.
    """
    lookup = NodeLookup(store)
    names = [lookup.resolve(parse_node_prefix(text)) for text in texts]
    checked = list(dict.fromkeys(names))
    findings = [finding for name in checked for finding in _verify(lookup, name)]
    return Verified(tuple(checked), tuple(findings))


def _verify(lookup: NodeLookup, name: NodeHash) -> list[Finding]:
    node = BUILTIN.get(name)
    findings: list[Finding] = []
    for keeper in lookup.keepers():
        try:
            node = keeper.find(name) or node
        except StoreDamaged as error:
            # A folder that cannot be read may have been one without it.
            finding = Finding(name, error.message, ref=keeper.ref)
            # Several versions of a workflow may have the same file.
            if keeper.lists(name) and finding not in findings:
                findings.append(finding)
    if node is not None:
        findings += _verify_type(lookup, node) + _verify_references(lookup, node)
    elif not findings:
        raise NoSuchNode(name)
    return findings


def _verify_type(lookup: NodeLookup, node: Node) -> list[Finding]:
    try:
        type_node = node if node.is_self_typed else lookup.get_type(node.type)
        if not is_schema(lookup, type_node):
            return [Finding(node.hash, f"its type {node.type} is not a schema")]
        problems = find_problems(type_node, node.payload)
    except NoSuchNode:
        return []  # told as a reference
    except (StoreDamaged, Refused) as error:
        return [Finding(node.hash, f"it cannot be held against its type: {error.message}")]
    return [
        Finding(node.hash, f"it breaks its schema: {each.message}", path=each.path)
        for each in problems
    ]


def _verify_references(lookup: NodeLookup, node: Node) -> list[Finding]:
    findings: list[Finding] = []
    try:
        targets = lookup.list_references(node)
    except StoreDamaged:
        return []  # told of the type
    for target in targets:
        what = "its type" if target == node.type else "it refers to"
        try:
            if lookup.find(target) is None:
                findings.append(Finding(node.hash, f"{what} {target}, which is not in this store"))
        except StoreDamaged as error:
            findings.append(Finding(node.hash, f"{what} {target}, but {error.message}"))
    return findings
