"""refs/cas/nodes: nodes that were put by hand, kept from git's gc by a tree (FORMAT.md, "Refs")."""

from collections.abc import Iterable, Iterator

from dulwich.objects import Tree

from uwf_git.errors import Conflict
from uwf_git.model.builtin import BUILTIN
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.model.thread import FORMAT
from uwf_git.store.nodes.tree import NODES, TREE_MODE, add_nodes, find_names
from uwf_git.store.objects.commit import CommitDraft, Signing, find_entry, read_commit, write_commit
from uwf_git.store.objects.message import build_message
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store

NODES_REF = "refs/cas/nodes"

_MOST_TRIES = 20


class NodesMoved(Conflict):
    code = "nodes-moved"

    def __init__(self) -> None:
        super().__init__("other processes kept putting nodes at the same time", hint="try again")


def put_nodes(store: Store, nodes: Iterable[Node], signing: Signing) -> bool:
    """Add *nodes* and the built-in schemas to refs/cas/nodes; return whether any was new."""
    nodes = list(nodes)
    added = [*BUILTIN.values(), *nodes]
    for _try in range(_MOST_TRIES):
        seen = store.refs.find(NODES_REF)
        parent = None if seen is None else read_commit(store.objects, seen)
        folder = None if parent is None else find_entry(store.objects, parent, NODES)
        growth = add_nodes(store.objects, folder, added)
        if growth.nodes == folder:
            return False
        tree = Tree()
        tree[NODES.encode()] = (TREE_MODE, growth.nodes)
        written = {each.id for each in growth.objects}
        new = [name for name, blob in growth.blobs.items() if blob in written]
        draft = CommitDraft(
            tree=tree,
            parents=() if parent is None else (parent,),
            message=build_put_message(new),
            objects=growth.objects,
        )
        if _move(store, seen, write_commit(store.objects, draft, signing)):
            return True
    raise NodesMoved


def build_put_message(new: Iterable[NodeHash]) -> bytes:
    names = " ".join(sorted(name for name in new if name not in BUILTIN))
    trailers = [("Uwf-Event", "put"), ("Uwf-Format", str(FORMAT))]
    return build_message("cas", f"put {names or 'the built-in schemas'}", trailers=trailers)


def list_nodes(store: Store) -> Iterator[NodeHash]:
    """List the nodes at refs/cas/nodes, the built-in schemas included."""
    seen = store.refs.find(NODES_REF)
    if seen is not None:
        folder = find_entry(store.objects, read_commit(store.objects, seen), NODES)
        yield from find_names(store.objects, folder, "")


def _move(store: Store, seen: Oid | None, to: Oid) -> bool:
    if seen is None:
        return store.refs.create(NODES_REF, to)
    return store.refs.advance(NODES_REF, seen=seen, to=to)
