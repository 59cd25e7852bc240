"""Read a thread at one of its commits: start.json, head.json, now.json and nodes/.

Each node is checked against its name. Parts are read on demand, so a step costs the same at any
depth.
Format: FORMAT.md, "The tree of a thread commit".
"""

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from dulwich.objects import ObjectID

from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import BUILTIN, START, STEP, find_reference
from uwf_git.model.event_rules import STEPS
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node
from uwf_git.model.thread import NotAPresent, ThreadState, TransitionRecord
from uwf_git.model.workflow import (
    Graph,
    Role,
    Workflow,
    freeze,
    parse_flow_node,
    parse_graph,
    parse_role,
    parse_workflow,
)
from uwf_git.store.nodes.tree import (
    DamagedNode,
    MissingNode,
    decode_node,
    find_blob,
    find_node,
    identify_node,
)
from uwf_git.store.objects.commit import (
    BadMessage,
    CommitView,
    body_of,
    damaged_commit,
    find_entry,
    read_commit,
    read_commit_file,
    subject_of,
)
from uwf_git.store.objects.objects import ObjectStore, get_blob
from uwf_git.store.objects.pack_file import ByteCache
from uwf_git.store.oid import Oid
from uwf_git.store.store import Store
from uwf_git.store.threads.message import parse_now, parse_thread_message

if TYPE_CHECKING:
    from uwf_git.model.flow import Flow


START_FILE = "start.json"
HEAD_FILE = "head.json"
NOW_FILE = "now.json"
NODES = "nodes"

_MS = 1000


class Snapshot(NamedTuple):
    objects: ObjectStore
    commit: CommitView
    record: TransitionRecord
    """What happened, and the status and head node after it."""

    @property
    def nodes(self) -> ObjectID:
        return self.get_entry(NODES)

    @property
    def turn_start(self) -> Oid:
        """The commit after which the turn that the thread is at began.

        That is the snapshot's own, unless it only controlled the thread (``pause``, ``patch``): an
        agent that is at work meanwhile stays in the same turn.
        """
        return Oid(self.record.turn or self.commit.oid)

    def get_entry(self, name: str) -> ObjectID:
        oid = find_entry(self.objects, self.commit, name)
        if oid is None:
            raise damaged_commit(self.commit.oid, f"has no {name}")
        return oid

    @property
    def subject(self) -> str:
        """The first line of the message."""
        return subject_of(self.commit.message)

    @property
    def body(self) -> str:
        return body_of(self.commit.message)

    def get_node(self, name: NodeHash) -> Node:
        node = find_node(self.objects, self.nodes, name)
        if node is None:
            raise MissingNode(name)
        return node

    def as_kept(self, node: Node) -> Node:
        """Return *node* with the order of keys that it is read with: its first blob is kept."""
        kept = find_node(self.objects, self.nodes, node.hash)
        return node if kept is None else node._replace(payload=kept.payload)

    def recorded_ms(self, node: Node) -> int:
        """Return when this was recorded; in the second in which *node* was made, the node's time.

        git counts in seconds and nodes in milliseconds: otherwise the end of a thread would appear
        to precede its last step.
        """
        recorded_ms = self.commit.time_s * _MS
        return node.timestamp if 0 <= node.timestamp - recorded_ms < _MS else recorded_ms

    def get_present(self) -> ThreadState:
        try:
            return parse_now(read_commit_file(self.objects, self.commit, NOW_FILE)).present
        except NotAPresent as error:
            problem = f"has an invalid {NOW_FILE}: {error}"
            raise damaged_commit(self.commit.oid, problem) from error

    def get_start(self) -> Node:
        content = read_commit_file(self.objects, self.commit, START_FILE)
        try:
            node = identify_node(content)
        except ValueError as error:
            problem = f"has a {START_FILE} that is not a node: {error}"
            raise damaged_commit(self.commit.oid, problem) from error
        if node.type != START:
            raise damaged_commit(self.commit.oid, f"has a {START_FILE} that is not a StartNode")
        return node

    def get_trunk(self) -> ThreadId | None:
        parent = self.record.parent_thread
        # A thread that an agent began has a parent thread as well, and no place in it.
        if parent is None or "parent" not in self.get_start().payload:
            return None
        return parent

    def get_nesting(self) -> int:
        """Return how deep the thread is nested: 0, or one deeper than its parent thread."""
        if self.record.parent_thread is None:
            # A fork of a nested thread has its StartNode, and no parent.
            return 0
        return int(self.get_start().payload.get("depth", 0))

    def get_head_node(self) -> Node:
        return self.get_node(self.record.node)

    def walk_chain(self) -> Iterator[Node]:
        """Yield the chain: StepNodes, newest first, then the StartNode."""
        name = self.record.node
        seen: set[NodeHash] = set()
        while True:
            node = self.get_node(name)
            yield node
            if node.type == START:
                return
            seen.add(name)
            previous = find_previous(node)
            # 64-bit names can be forged: a fetched chain may be a cycle.
            if previous is None or previous in seen:
                raise self.broken_chain(name)
            name = previous

    def broken_chain(self, name: NodeHash) -> StoreDamaged:
        problem = f"has {name} in its chain, which is not a step"
        return damaged_commit(self.commit.oid, problem)


def find_previous(node: Node) -> NodeHash | None:
    if node.type != STEP or not isinstance(node.payload, dict):
        return None
    return find_reference(node.payload.get("prev"))


def read_snapshot(store: Store, oid: Oid) -> Snapshot:
    return read_at(store.objects, oid)


def read_at(objects: ObjectStore, oid: Oid) -> Snapshot:
    commit = read_commit(objects, oid)
    try:
        return Snapshot(objects, commit, parse_thread_message(commit.message))
    except BadMessage as error:
        raise error.of_commit(oid) from error


def get_typed(snapshot: Snapshot, name: NodeHash, kind: NodeHash) -> Node:
    return check_type(snapshot.get_node(name), kind)


def check_type(node: Node, kind: NodeHash) -> Node:
    if node.type != kind:
        title = BUILTIN[kind].payload["title"]
        raise DamagedNode(node.hash, f"stands in the place of a node of the type {title}")
    return node


def find_newest_step(tip: Snapshot) -> Snapshot:
    """Return the commit of the newest step that counts at *tip*; the oldest of all for no step."""
    at = tip
    while at.record.depth and not (at.record.event in STEPS and at.record.node == tip.record.node):
        at = read_at(at.objects, at.commit.parents[0])
    return at


# Workflows, roles, graphs and schemas of a thread, read and parsed once for each blob.
#
# What was parsed is named by its blob's git id, never by the node's 64-bit name alone, which can
# be forged; the tree of the commit at hand says which blob that is, so another commit's never
# shows. All steps of a process share the values, so nobody can change them.

Parsed = TypeVar("Parsed")

# Values in memory take about ten times the bytes of their JSON.
_IN_MEMORY = 10
_PAYLOAD = attrgetter("payload")
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
    return _get(snapshot, name, _PAYLOAD)


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
