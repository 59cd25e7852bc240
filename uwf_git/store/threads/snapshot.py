"""Read a thread at one of its commits: start.json, head.json, now.json and nodes/.

Each node is checked against its name. Parts are read on demand, so a step costs the same at any
depth.
Format: FORMAT.md, "The tree of a thread commit".
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from dulwich.objects import Blob, ObjectID, Tree

from uwf_git.debug_log import debug
from uwf_git.model.builtin import BUILTIN, START, STEP, find_reference
from uwf_git.model.event_folds import Cause, Standing, Words, describe_event
from uwf_git.model.event_rules import apply_event
from uwf_git.model.names import NodeHash, ThreadId, is_node_hash, is_thread_id
from uwf_git.model.node import Node, NotCanonical, canonical
from uwf_git.model.thread import (
    EVENTS,
    FORMAT,
    STATUSES,
    Event,
    NotAPresent,
    Status,
    ThreadState,
    TransitionRecord,
    parse_present,
)
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
    FILE_MODE,
    TREE_MODE,
    DamagedNode,
    MissingNode,
    add_nodes,
    check_node,
    decode_node,
    find_blob,
    find_node,
    identify_node,
    unite_nodes,
)
from uwf_git.store.objects.commit import (
    BadMessage,
    CommitDraft,
    CommitView,
    Signing,
    body_of,
    build_message,
    damaged_commit,
    decode_json,
    encode_json,
    find_entry,
    parse_trailers,
    read_commit,
    read_commit_file,
    subject_of,
    write_commit,
)
from uwf_git.store.objects.objects import ObjectStore, get_blob
from uwf_git.store.objects.pack_file import ByteCache
from uwf_git.store.oid import Oid, is_oid
from uwf_git.store.store import Store

if TYPE_CHECKING:
    from uwf_git.model.flow import Flow

# Thread messages and now.json: a transition record as its commit has it.

# Thread messages: a transition record as the trailers of a commit.
#
# Format: FORMAT.md, "The trailers of a thread commit".

_FORKED_FROM = "Uwf-Forked-From"
_PARENT = "Uwf-Parent-Thread"
_RETRIES = "Uwf-Retries-Left"
_LISTED = frozenset(
    {
        *(
            "Uwf-Thread",
            _PARENT,
            "Uwf-Event",
            "Uwf-Status",
            "Uwf-Node",
            "Uwf-Depth",
            "Uwf-Workflow",
        ),
        *("Uwf-Workflow-Name", "Uwf-Role", "Uwf-Agent", "Uwf-At", "Uwf-Attempt", _RETRIES),
        *("Uwf-Turn", "Uwf-Files", _FORKED_FROM, "Uwf-Cause", "Uwf-Format"),
    }
)
_FLAGS = {True: "yes", False: "no"}
_FILES = re.compile(r"[0-9a-f]{40}\.\.[0-9a-f]{40}")
_LONGEST_NUMBER = 15


def build_thread_message(record: TransitionRecord, words: Words) -> bytes:
    """Write the message of a thread commit; the subject is ``<role or event>: <said>``."""
    who = record.role or record.event
    return build_message(who, words.said, body=words.body, trailers=_list_trailers(record))


def parse_thread_message(message: bytes) -> TransitionRecord:
    trailers = parse_trailers(message)
    unlisted = trailers.keys() - _LISTED
    if unlisted:
        raise BadMessage(f"has a trailer that format {FORMAT} does not list: {min(unlisted)}")
    return TransitionRecord(
        thread=_thread(_required(trailers, "Uwf-Thread")),
        event=_event(_required(trailers, "Uwf-Event")),
        status=_status(_required(trailers, "Uwf-Status")),
        node=_node(trailers, "Uwf-Node"),
        depth=_natural(trailers, "Uwf-Depth"),
        workflow=_node(trailers, "Uwf-Workflow"),
        workflow_name=_required(trailers, "Uwf-Workflow-Name"),
        role=trailers.get("Uwf-Role"),
        agent=trailers.get("Uwf-Agent"),
        attempt=_natural(trailers, "Uwf-Attempt") if "Uwf-Attempt" in trailers else None,
        forked_from=_thread(trailers[_FORKED_FROM]) if _FORKED_FROM in trailers else None,
        cause=_node(trailers, "Uwf-Cause") if "Uwf-Cause" in trailers else None,
        at=trailers.get("Uwf-At"),
        parent_thread=_thread(trailers[_PARENT]) if _PARENT in trailers else None,
        retries_left=_flag(trailers[_RETRIES]) if _RETRIES in trailers else None,
        turn=_commit(trailers["Uwf-Turn"]) if "Uwf-Turn" in trailers else None,
        files=_files(trailers["Uwf-Files"]) if "Uwf-Files" in trailers else None,
    )


def _list_trailers(record: TransitionRecord) -> list[tuple[str, str]]:
    retries = None if record.retries_left is None else _FLAGS[record.retries_left]
    pairs: list[tuple[str, str | int | None]] = [
        ("Uwf-Thread", record.thread),
        (_PARENT, record.parent_thread),
        ("Uwf-Event", record.event),
        ("Uwf-Status", record.status),
        ("Uwf-Node", record.node),
        ("Uwf-Depth", record.depth),
        ("Uwf-Workflow", record.workflow),
        ("Uwf-Workflow-Name", record.workflow_name),
        ("Uwf-Role", record.role),
        ("Uwf-Agent", record.agent),
        ("Uwf-At", record.at),
        ("Uwf-Attempt", record.attempt),
        (_RETRIES, retries),
        ("Uwf-Turn", record.turn),
        ("Uwf-Files", record.files),
        (_FORKED_FROM, record.forked_from),
        ("Uwf-Cause", record.cause),
        ("Uwf-Format", FORMAT),
    ]
    return [(name, str(value)) for name, value in pairs if value not in {None, ""}]


def _required(trailers: dict[str, str], name: str) -> str:
    try:
        return trailers[name]
    except KeyError:
        raise BadMessage(f"has no {name}") from None


def _thread(text: str) -> ThreadId:
    if not is_thread_id(text):
        raise BadMessage(f"names no thread: {text[:40]!r}")
    return ThreadId(text)


def _event(text: str) -> Event:
    if text not in EVENTS:
        raise BadMessage(f"has an unknown event: {text[:40]!r}")
    return text  # type: ignore[return-value]  # EVENTS are the Literal's own words


def _status(text: str) -> Status:
    if text not in STATUSES:
        raise BadMessage(f"has an unknown status: {text[:40]!r}")
    return text  # type: ignore[return-value]  # STATUSES are the Literal's own words


def _node(trailers: dict[str, str], name: str) -> NodeHash:
    text = _required(trailers, name)
    if not is_node_hash(text):
        raise BadMessage(f"has no node in {name}: {text[:40]!r}")
    return NodeHash(text)


def _natural(trailers: dict[str, str], name: str) -> int:
    text = _required(trailers, name)
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER):
        raise BadMessage(f"has no number in {name}: {text[:40]!r}")
    return int(text)


def _flag(text: str) -> bool:
    if text not in _FLAGS.values():
        raise BadMessage(f"says neither yes nor no in {_RETRIES}: {text[:40]!r}")
    return text == _FLAGS[True]


def _commit(text: str) -> str:
    if not is_oid(text):
        raise BadMessage(f"names no commit in Uwf-Turn: {text[:40]!r}")
    return text


def _files(text: str) -> str:
    if _FILES.fullmatch(text) is None:
        raise BadMessage(f"names no two commits in Uwf-Files: {text[:40]!r}")
    return text


# Read now.json: a thread's state as one of its commits has it. Format: FORMAT.md, "now.json".


class NowFile(NamedTuple):
    present: ThreadState
    document: Mapping[str, Any]


# A thread with many branches is read for each step of each of them.
_LONG_BYTES = 8 * 1024
_MOST_KNOWN = 4
_SPLIT = b'"split": {'


def parse_now(content: bytes) -> NowFile:
    if len(content) >= _LONG_BYTES and _SPLIT in content:
        return _parse_long(content)
    return _parse(content, lambda document: document)


@lru_cache(maxsize=_MOST_KNOWN)
def _parse_long(content: bytes) -> NowFile:
    # Shared, so nobody may change it.
    return _parse(content, freeze)


def _parse(content: bytes, share: Callable[[Any], Any]) -> NowFile:
    try:
        document = share(canonical(decode_json(content)))
        return NowFile(parse_present(document), document)
    except NotCanonical as error:
        raise NotAPresent(error.message) from error
    except RecursionError as error:
        raise NotAPresent("nested too deeply") from error
    except ValueError as error:
        raise NotAPresent(str(error)) from error


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
            raise damaged_commit(self.commit.oid, f"has an invalid {NOW_FILE}: {error}") from (
                error
            )

    def get_start(self) -> Node:
        content = read_commit_file(self.objects, self.commit, START_FILE)
        try:
            node = identify_node(content)
        except ValueError as error:
            raise damaged_commit(
                self.commit.oid, f"has a {START_FILE} that is not a node: {error}"
            ) from error
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
            previous = _previous(node)
            # 64-bit names can be forged: a fetched chain may be a cycle.
            if previous is None or previous in seen:
                raise damaged_commit(
                    self.commit.oid, f"has {name} in its chain, which is not a step"
                )
            name = previous


def _previous(node: Node) -> NodeHash | None:
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
    from uwf_git.model.event_rules import STEPS  # noqa: PLC0415 (start-up time)

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


# Write the commit of a transition: tree, nodes and message, before any ref moves.
#
# The tree holds every node that the thread reaches (its closure). The caller moves the ref
# afterwards (heads.py). Format: FORMAT.md, "The tree of a thread commit".


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
    return _record(store, new, signing, parent=None)


def record_next(store: Store, parent: Snapshot, new: NewCommit, signing: Signing) -> Oid:
    return _record(store, new, signing, parent=parent)


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


def _record(store: Store, new: NewCommit, signing: Signing, *, parent: Snapshot | None) -> Oid:
    draft = draft_next(store.objects, () if parent is None else (parent,), new)
    return write_draft(store, draft, new, signing)


def write_draft(store: Store, draft: CommitDraft, new: NewCommit, signing: Signing) -> Oid:
    commit = write_commit(store.objects, draft, signing)
    record = new.record
    debug("BPASMJSC", "commit written", thread=record.thread, event=record.event, commit=commit)
    if store.own_transitions is not None:
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
