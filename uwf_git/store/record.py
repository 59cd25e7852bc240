"""Recording: a transition as objects in git, before any ref moves.

Owns: what the tree of a thread commit holds. Knows nothing of: refs, how a move was decided.
Always true: the tree holds every node that the thread reaches (its closure), so that one ref
shares a thread whole. The caller moves the ref afterwards (heads.py).
Format: FORMAT.md, "The tree of a thread commit".
"""

from typing import NamedTuple

from dulwich.objects import Blob, ObjectID, Tree

from uwf_git.debug_log import debug
from uwf_git.model.node import Node
from uwf_git.model.thread import Present
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.store.commit import CommitDraft, Signing, write_commit
from uwf_git.store.node_blob import check_node, encode_json
from uwf_git.store.node_tree import FILE_MODE, TREE_MODE, add_nodes
from uwf_git.store.refs import Oid
from uwf_git.store.snapshot import HEAD_FILE, NODES, NOW_FILE, START_FILE, Snapshot
from uwf_git.store.store import Store
from uwf_git.store.thread_message import build_thread_message


class Transition(NamedTuple):
    """One thing that happened to a thread, ready to be recorded."""

    record: TransitionRecord
    said: str
    """The subject, after the role or the event."""

    present: Present
    """The thread's present after it."""

    nodes: tuple[Node, ...] = ()
    """The nodes that it adds."""

    body: str = ""


def record_start(store: Store, transition: Transition, signing: Signing) -> Oid:
    """Write the first commit of a thread; the head node of the record is its StartNode."""
    return _record(store, transition, signing, parent=None)


def record_next(store: Store, parent: Snapshot, transition: Transition, signing: Signing) -> Oid:
    """Write the commit that follows *parent*.

    Raises:
        NodeCollision: an added node's name has another payload in this thread.
        DamagedNode: an added node has not the parts that its type promises.
        StoreDamaged: the parent has not all that a thread commit has.
        OSError: the machine would not let it be written.
    """
    return _record(store, transition, signing, parent=parent)


def _record(
    store: Store, transition: Transition, signing: Signing, *, parent: Snapshot | None
) -> Oid:
    objects = store.objects
    # What is off its schema could never be read again: rather no commit than a thread lost.
    added = [check_node(node) for node in transition.nodes]
    growth = add_nodes(objects, None if parent is None else parent.nodes, added)
    now = Blob.from_string(encode_json(transition.present.as_document()))
    head = growth.blobs.get(transition.record.node)
    start = head
    if parent is not None:
        start = parent.get_entry(START_FILE)
        head = head or parent.get_entry(HEAD_FILE)
    draft = CommitDraft(
        tree=_tree(start=start, head=head, now=now.id, nodes=growth.nodes),
        parents=() if parent is None else (parent.commit,),
        message=build_thread_message(transition.record, said=transition.said, body=transition.body),
        objects=[*growth.objects, now],
    )
    commit = write_commit(objects, draft, signing)
    record = transition.record
    debug("BPASMJSC", "commit written", thread=record.thread, event=record.event, commit=commit)
    if store.moves is not None:
        store.moves.note_recorded(commit)
    return commit


def _tree(*, start: ObjectID | None, head: ObjectID | None, now: ObjectID, nodes: ObjectID) -> Tree:
    tree = Tree()
    if start is None or head is None:
        raise ValueError("a thread commit needs a StartNode and a head")  # a bug of the caller
    tree[START_FILE.encode()] = (FILE_MODE, start)
    tree[HEAD_FILE.encode()] = (FILE_MODE, head)
    tree[NOW_FILE.encode()] = (FILE_MODE, now)
    tree[NODES.encode()] = (TREE_MODE, nodes)
    return tree
