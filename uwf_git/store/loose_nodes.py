"""Nodes put by hand.

Owns: refs/cas/nodes, whose tree is a `nodes/` folder that keeps them from git's gc.
Knows nothing of: threads and workflows, which keep nodes too.
Format: FORMAT.md, "Refs".
"""

from collections.abc import Iterable, Iterator

from dulwich.objects import Tree

from uwf_git.errors import Conflict
from uwf_git.model.builtin import BUILTIN
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.transition_record import FORMAT
from uwf_git.store.commit import CommitDraft, Signing, find_entry, read_commit, write_commit
from uwf_git.store.message import build_message
from uwf_git.store.node_tree import TREE_MODE, add_nodes, find_names
from uwf_git.store.refs import Oid
from uwf_git.store.store import Store

NODES_REF = "refs/cas/nodes"

_NODES = "nodes"
_MOST_TRIES = 20


class NodesMoved(Conflict):
    """Others put nodes all the while."""

    code = "nodes-moved"

    def __init__(self) -> None:
        super().__init__("others put nodes all the while", hint="try again")


def put_nodes(store: Store, nodes: Iterable[Node], signing: Signing) -> bool:
    """Keep *nodes* (and the built-in schemas) at refs/cas/nodes.

    Returns:
        Whether anything was new.

    Raises:
        NodeCollision: one name has another payload there.
        NodesMoved: it kept moving under us.
    """
    nodes = list(nodes)
    added = [*BUILTIN.values(), *nodes]
    for _try in range(_MOST_TRIES):
        seen = store.refs.find(NODES_REF)
        parent = None if seen is None else read_commit(store.objects, seen)
        folder = None if parent is None else find_entry(store.objects, parent, _NODES)
        growth = add_nodes(store.objects, folder, added)
        if growth.nodes == folder:
            return False
        tree = Tree()
        tree[_NODES.encode()] = (TREE_MODE, growth.nodes)
        names = " ".join(node.hash for node in nodes) or "the built-in schemas"
        draft = CommitDraft(
            tree=tree,
            parents=() if parent is None else (parent,),
            message=build_message(
                "cas",
                f"put {names}",
                trailers=[("Uwf-Event", "put"), ("Uwf-Format", str(FORMAT))],
            ),
            objects=growth.objects,
        )
        if _move(store, seen, write_commit(store.objects, draft, signing)):
            return True
    raise NodesMoved


def list_nodes(store: Store) -> Iterator[NodeHash]:
    """List the nodes that were put by hand, and the built-in ones with them."""
    seen = store.refs.find(NODES_REF)
    if seen is not None:
        folder = find_entry(store.objects, read_commit(store.objects, seen), _NODES)
        yield from find_names(store.objects, folder, "")


def _move(store: Store, seen: Oid | None, to: Oid) -> bool:
    if seen is None:
        return store.refs.create(NODES_REF, to)
    return store.refs.advance(NODES_REF, seen=seen, to=to)
