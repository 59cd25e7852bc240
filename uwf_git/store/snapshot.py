"""Snapshots: a thread as one of its commits has it.

Owns: start.json, head.json, now.json and nodes/ of a commit as one readable thing.
Knows nothing of: refs, what happens next.
Always true: what it hands out was checked against its name; nothing is read before it is asked
for, so that a step costs the same at any depth.
Format: FORMAT.md, "The tree of a thread commit".
"""

from collections.abc import Iterator
from typing import NamedTuple

from dulwich.objects import ObjectID

from uwf_git.model.builtin import START, STEP
from uwf_git.model.canonical import NotCanonical, canonical
from uwf_git.model.node import Node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import find_reference
from uwf_git.model.thread import NotAPresent, Present, parse_present
from uwf_git.model.transition_record import TransitionRecord
from uwf_git.store.commit import (
    CommitView,
    DamagedCommit,
    find_entry,
    read_commit,
    read_file,
    read_json_file,
)
from uwf_git.store.message import BadMessage, body_of, subject_of
from uwf_git.store.node_blob import identify_node
from uwf_git.store.node_tree import MissingNode, find_node
from uwf_git.store.objects import ObjectStore
from uwf_git.store.refs import Oid
from uwf_git.store.store import Store
from uwf_git.store.thread_message import parse_thread_message

START_FILE = "start.json"
HEAD_FILE = "head.json"
NOW_FILE = "now.json"
NODES = "nodes"

_MS = 1000


class Snapshot(NamedTuple):
    """A thread as a commit has it."""

    objects: ObjectStore
    commit: CommitView
    record: TransitionRecord
    """What the commit says happened, and the status and head after it."""

    @property
    def nodes(self) -> ObjectID:
        """The folder of the commit's nodes."""
        return self.get_entry(NODES)

    def get_entry(self, name: str) -> ObjectID:
        """Give what the commit's tree has under *name*.

        Raises:
            DamagedCommit: there is no such thing.
        """
        oid = find_entry(self.objects, self.commit, name)
        if oid is None:
            raise DamagedCommit(self.commit.oid, f"has no {name}")
        return oid

    @property
    def subject(self) -> str:
        """What happened, in words."""
        return subject_of(self.commit.message)

    @property
    def body(self) -> str:
        """The reason or the question, if there was one."""
        return body_of(self.commit.message)

    def get_node(self, name: NodeHash) -> Node:
        """Give the node *name*, checked.

        Raises:
            MissingNode: the thread does not hold it.
            DamagedNode: it is not what its name says.
        """
        node = find_node(self.objects, self.nodes, name)
        if node is None:
            raise MissingNode(name)
        return node

    def recorded_ms(self, node: Node) -> int:
        """Give when this was recorded, which is when *node* was made if that was in its second.

        git counts in seconds and nodes in milliseconds: without it the end of a thread would seem
        to come before its last step.
        """
        recorded_ms = self.commit.time_s * _MS
        return node.timestamp if 0 <= node.timestamp - recorded_ms < _MS else recorded_ms

    def get_present(self) -> Present:
        """Give the thread's present.

        Raises:
            DamagedCommit: now.json is missing or holds something else.
        """
        try:
            return parse_present(canonical(read_json_file(self.objects, self.commit, NOW_FILE)))
        except (NotAPresent, NotCanonical) as error:
            raise DamagedCommit(self.commit.oid, f"has a {NOW_FILE} that is none: {error}") from (
                error
            )

    def get_start(self) -> Node:
        """Give the StartNode.

        Raises:
            DamagedCommit: start.json is missing or holds something else.
        """
        content = read_file(self.objects, self.commit, START_FILE)
        try:
            node = identify_node(content)
        except ValueError as error:
            raise DamagedCommit(
                self.commit.oid, f"has a {START_FILE} that is no node: {error}"
            ) from error
        if node.type != START:
            raise DamagedCommit(self.commit.oid, f"has a {START_FILE} that is no StartNode")
        return node

    def get_head_node(self) -> Node:
        """Give the head of the chain: the newest StepNode, or the StartNode."""
        return self.get_node(self.record.node)

    def walk_chain(self) -> Iterator[Node]:
        """Give the chain from its head back: StepNodes, newest first, then the StartNode.

        Raises:
            MissingNode, DamagedNode: the chain is broken there.
        """
        name = self.record.node
        seen: set[NodeHash] = set()
        while True:
            node = self.get_node(name)
            yield node
            if node.type == START:
                return
            seen.add(name)
            previous = _previous(node)
            # 64 bits can be forged: a chain from elsewhere may lead back into itself.
            if previous is None or previous in seen:
                raise DamagedCommit(self.commit.oid, f"has {name} in its chain, which is no step")
            name = previous


def _previous(node: Node) -> NodeHash | None:
    if node.type != STEP or not isinstance(node.payload, dict):
        return None
    return find_reference(node.payload.get("prev"))


def read_snapshot(store: Store, oid: Oid) -> Snapshot:
    """Read the thread commit *oid*.

    Raises:
        DamagedCommit, BadMessage: it is none of ours.
    """
    commit = read_commit(store.objects, oid)
    try:
        record = parse_thread_message(commit.message)
    except BadMessage as error:
        raise error.of_commit(oid) from error
    return Snapshot(store.objects, commit, record)
