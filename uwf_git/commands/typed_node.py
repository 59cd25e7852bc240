"""Typed nodes: a node that is of the kind that its place asks for.

Owns: the check of a node's type where the code goes on to rely on its parts.
Always true: whoever can push can point any reference at any node; that is damage, never a crash.
"""

from uwf_git.model.builtin import BUILTIN
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.store.node_blob import DamagedNode
from uwf_git.store.snapshot import Snapshot


def get_typed(snapshot: Snapshot, name: NodeHash, kind: NodeHash) -> Node:
    """Give the node *name*, which must be of the built-in type *kind*.

    Raises:
        MissingNode, DamagedNode: it is not there, or something else.
    """
    return check_type(snapshot.get_node(name), kind)


def check_type(node: Node, kind: NodeHash) -> Node:
    """Give *node* if it is of the built-in type *kind*.

    Raises:
        DamagedNode: it is something else.
    """
    if node.type != kind:
        title = BUILTIN[kind].payload["title"]
        raise DamagedNode(node.hash, f"stands in the place of a node of the type {title}")
    return node
