"""Workflows, roles, graphs and schemas of a thread, read and parsed once for each blob.

What was parsed is named by its blob's git id, never by the node's 64-bit name alone, which can be
forged; the tree of the commit at hand says which blob that is, so another commit's never shows. All
steps of a process share the values, so nobody can change them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from dulwich.objects import ObjectID

from uwf_git.model.frozen import freeze
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.model.workflow import (
    Graph,
    Role,
    Workflow,
    parse_flow_node,
    parse_graph,
    parse_role,
    parse_workflow,
)
from uwf_git.store.nodes.blob import decode_node
from uwf_git.store.nodes.tree import MissingNode, find_blob
from uwf_git.store.objects.byte_cache import ByteCache
from uwf_git.store.objects.objects import get_blob
from uwf_git.store.threads.snapshot import Snapshot

if TYPE_CHECKING:
    from uwf_git.model.flow import Flow

Parsed = TypeVar("Parsed")

# Values in memory take about ten times the bytes of their JSON.
_IN_MEMORY = 10
_PARSED: ByteCache[tuple[ObjectID, NodeHash, object], Any] = ByteCache(
    8 * 1024 * 1024, largest=2 * 1024 * 1024
)


def get_workflow(snapshot: Snapshot, name: NodeHash) -> Workflow:
    return _get(snapshot, name, parse_workflow)


def get_role(snapshot: Snapshot, name: NodeHash) -> Role:
    return _get(snapshot, name, parse_role)


def get_graph(snapshot: Snapshot, name: NodeHash) -> Graph:
    return _get(snapshot, name, parse_graph)


def get_flow(snapshot: Snapshot, name: NodeHash) -> "Flow":
    return _get(snapshot, name, parse_flow_node)


def get_schema(snapshot: Snapshot, name: NodeHash) -> Any:
    return _get(snapshot, name, _payload)


def _payload(node: Node) -> Any:
    return node.payload


def _get(snapshot: Snapshot, name: NodeHash, parse: Callable[[Node], Parsed]) -> Parsed:
    blob = find_blob(snapshot.objects, snapshot.nodes, name)
    if blob is None:
        raise MissingNode(name)
    # The name too: a forged tree may give one blob to two names, and that is damage.
    key = (blob, name, parse)
    held: Parsed | None = _PARSED.get(key)
    if held is not None:
        return held
    content = get_blob(snapshot.objects, blob)
    node = decode_node(name, content)
    parsed = parse(node._replace(payload=freeze(node.payload)))
    _PARSED.put(key, parsed, len(content) * _IN_MEMORY)
    return parsed
