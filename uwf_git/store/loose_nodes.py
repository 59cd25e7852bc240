"""Nodes put by hand, and finding a node anywhere in the store.

Owns: refs/cas/nodes, whose tree is a `nodes/` folder that keeps them from git's gc.
Knows nothing of: threads and workflows beyond that their trees have such a folder too.
Always true: a node is found wherever a ref keeps it. This looks through the refs one by one;
an index comes with the stores that need it.
Format: FORMAT.md, "Refs".
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from dulwich.objects import ObjectID, Tree

from uwf_git.errors import Conflict, Refused, StoreDamaged
from uwf_git.model.builtin import BUILTIN
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.transition_record import FORMAT
from uwf_git.store.commit import CommitDraft, Signing, find_entry, read_commit, write_commit
from uwf_git.store.heads import ACTIVE, ARCHIVE
from uwf_git.store.message import build_message
from uwf_git.store.node_tree import TREE_MODE, add_nodes, find_names, find_node
from uwf_git.store.refs import Oid
from uwf_git.store.registry import WORKFLOWS
from uwf_git.store.store import Store

NODES_REF = "refs/cas/nodes"

_NODES = "nodes"
_HASH_LENGTH = 13
_MOST_TRIES = 20
_MOST_LISTED = 10


class NoSuchNode(Refused):
    """No ref of this store keeps such a node."""

    code = "no-such-node"

    def __init__(self, text: str) -> None:
        super().__init__(
            f"there is no node {text} in this store",
            hint="`uwf thread show ID --full` and `uwf workflow show NAME` name nodes",
            node=text,
        )


class AmbiguousNode(Refused):
    """Several nodes begin so."""

    code = "ambiguous-node"

    def __init__(self, text: str, matches: list[NodeHash]) -> None:
        shown = ", ".join(matches[:_MOST_LISTED])
        more = f" and {len(matches) - _MOST_LISTED} more" if len(matches) > _MOST_LISTED else ""
        super().__init__(
            f"{len(matches)} nodes begin with {text}: {shown}{more}",
            hint="give more of the hash",
            matches=matches,
        )


class NodesMoved(Conflict):
    """Others put nodes all the while."""

    code = "nodes-moved"

    def __init__(self) -> None:
        super().__init__("others put nodes all the while", hint="try again")


class _Keeper(NamedTuple):
    """One ref's folder of nodes."""

    ref: str
    nodes: ObjectID | None


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


def find_any_node(store: Store, name: NodeHash) -> Node | None:
    """Give the node *name* from whichever ref keeps it; the built-in ones are always there.

    Raises:
        StoreDamaged: none has it whole, and where one should have it something is damaged.
    """
    builtin = BUILTIN.get(name)
    if builtin is not None:
        return builtin
    damage: StoreDamaged | None = None
    for keeper in _keepers(store):
        try:
            node = find_node(store.objects, keeper.nodes, name)
        except StoreDamaged as error:
            # Another ref may have it whole.
            damage = damage or error
            continue
        if node is not None:
            return node
    if damage is not None:
        raise damage
    return None


def get_any_node(store: Store, name: NodeHash) -> Node:
    """Give the node *name* from whichever ref keeps it.

    Raises:
        NoSuchNode: none does.
        StoreDamaged: none has it whole, and where one should have it something is damaged.
    """
    node = find_any_node(store, name)
    if node is None:
        raise NoSuchNode(name)
    return node


def resolve_node(store: Store, prefix: str) -> NodeHash:
    """Find the node whose name begins with *prefix* (a whole name is given back as it is).

    Raises:
        NoSuchNode, AmbiguousNode: none or several begin so.
    """
    if len(prefix) == _HASH_LENGTH:
        return NodeHash(prefix)
    matches = {name for name in BUILTIN if name.startswith(prefix)}
    for keeper in _keepers(store):
        # What cannot be read in one thread must not hide the nodes of all others.
        with suppress(StoreDamaged):
            matches.update(find_names(store.objects, keeper.nodes, prefix))
    if not matches:
        raise NoSuchNode(prefix)
    if len(matches) > 1:
        raise AmbiguousNode(prefix, sorted(matches))
    return matches.pop()


def list_nodes(store: Store) -> Iterator[NodeHash]:
    """List the nodes that were put by hand, and the built-in ones with them."""
    seen = store.refs.find(NODES_REF)
    if seen is not None:
        folder = find_entry(store.objects, read_commit(store.objects, seen), _NODES)
        yield from find_names(store.objects, folder, "")


def _keepers(store: Store) -> Iterator[_Keeper]:
    """Give the folder of nodes of every ref, each folder once; a damaged ref has none."""
    seen: set[ObjectID] = set()
    for ref in _refs(store):
        folder = _folder(store, ref)
        if folder is not None and folder not in seen:
            seen.add(folder)
            yield _Keeper(ref, folder)


def _refs(store: Store) -> Iterator[str]:
    yield NODES_REF
    for prefix in (WORKFLOWS, ACTIVE, ARCHIVE):
        for name in reversed(store.refs.names(prefix)):
            yield prefix + name


def _folder(store: Store, ref: str) -> ObjectID | None:
    try:
        oid = store.refs.find(ref)
        if oid is None:
            return None
        return find_entry(store.objects, read_commit(store.objects, oid), _NODES)
    except StoreDamaged:
        # One damaged thread must not hide the nodes of all others; `uwf thread list` names it.
        return None


def _move(store: Store, seen: Oid | None, to: Oid) -> bool:
    if seen is None:
        return store.refs.create(NODES_REF, to)
    return store.refs.advance(NODES_REF, seen=seen, to=to)
