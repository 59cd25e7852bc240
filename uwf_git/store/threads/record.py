"""Write the commit of a transition: tree, nodes and message, before any ref moves.

The tree holds every node that the thread reaches (its closure). The caller moves the ref
afterwards (heads.py). Format: FORMAT.md, "The tree of a thread commit".
"""

from collections.abc import Sequence
from typing import NamedTuple

from dulwich.objects import Blob, ObjectID, Tree

from uwf_git.debug_log import debug
from uwf_git.model.event_folds import Cause, Standing, Words, describe_event
from uwf_git.model.event_rules import apply_event
from uwf_git.model.node import Node
from uwf_git.model.thread import Event, ThreadState, TransitionRecord
from uwf_git.store.nodes.tree import FILE_MODE, TREE_MODE, add_nodes, check_node, unite_nodes
from uwf_git.store.objects.commit import CommitDraft, Signing, encode_json, write_commit
from uwf_git.store.objects.objects import ObjectStore
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.message import build_thread_message
from uwf_git.store.threads.snapshot import HEAD_FILE, NODES, NOW_FILE, START_FILE, Snapshot


class NewCommit(NamedTuple):
    record: TransitionRecord
    words: Words
    present: ThreadState

    nodes: tuple[Node, ...] = ()

    @property
    def said(self) -> str:
        """The subject, after the role or the event."""
        return self.words.said


def read_standing(snapshot: Snapshot) -> Standing:
    return Standing(snapshot.record, snapshot.get_present(), snapshot.commit.oid)


def build_next(
    before: Standing, event: Event, cause: Cause, *, nodes: tuple[Node, ...] = ()
) -> NewCommit:
    """Build the commit of *event*; record, words and now.json follow from the event's rule."""
    after = apply_event(before, event, cause)
    return NewCommit(after.record, describe_event(before, event, cause), after.state, nodes)


def record_start(store: Store, new: NewCommit, signing: Signing) -> Oid:
    return write_draft(store, draft_next(store.objects, (), new), new, signing)


def record_next(store: Store, parent: Snapshot, new: NewCommit, signing: Signing) -> Oid:
    return write_draft(store, draft_next(store.objects, (parent,), new), new, signing)


def draft_next(
    objects: ObjectStore,
    parents: Sequence[Snapshot],
    new: NewCommit,
    *,
    is_own_start: bool = False,
    grown_from: Snapshot | None = None,
) -> CommitDraft:
    """Draft the commit that follows *parents*; nothing is written.

    The first of the parents is the thread's own; all their nodes are in its tree. With
    *is_own_start* the record's node is the StartNode as well: a thread begins here. *grown_from*
    is a commit that all the parents follow: what it has is not read again in each.
    """
    # A node that does not fit its schema cannot be read again: refuse it before the commit.
    added = [check_node(node) for node in new.nodes]
    base = None if grown_from is None else grown_from.nodes
    united = unite_nodes(objects, [parent.nodes for parent in parents], base)
    growth = add_nodes(united.objects, united.nodes, added)
    now = Blob.from_string(encode_json(new.present.as_document()))
    head = growth.blobs.get(new.record.node)
    start = head
    if parents and not is_own_start:
        start = parents[0].get_entry(START_FILE)
        head = head or parents[0].get_entry(HEAD_FILE)
    return CommitDraft(
        tree=_tree(start=start, head=head, now=now.id, nodes=growth.nodes),
        parents=tuple(parent.commit for parent in parents),
        message=build_thread_message(new.record, new.words),
        objects=[*united.without(growth.outgrown), *growth.objects, now],
    )


def write_draft(store: Store, draft: CommitDraft, new: NewCommit, signing: Signing) -> Oid:
    commit = write_commit(store.objects, draft, signing)
    record = new.record
    debug("BPASMJSC", "commit written", thread=record.thread, event=record.event, commit=commit)
    store.own_transitions.note_recorded(commit)
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
