"""A thread in the store: read at one of its commits, its commits, and the next one, written."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import accumulate
from operator import attrgetter
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from dulwich.objects import Blob, ObjectID, Tree

from uwf_git.debug_log import debug
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import BUILTIN, START, STEP, find_reference
from uwf_git.model.event_folds import Cause, Standing, Words, describe_event
from uwf_git.model.event_rules import STEPS, apply_event
from uwf_git.model.names import NodeHash, Oid, ThreadId, is_node_hash, is_oid, is_thread_id
from uwf_git.model.node import Node, NotCanonical, canonical
from uwf_git.model.thread import (
    EVENTS,
    FORMAT,
    STATUSES,
    Event,
    NotAPresent,
    ThreadState,
    TransitionRecord,
    parse_present,
)
from uwf_git.model.workflow import freeze, parse_flow_node, parse_graph, parse_role, parse_workflow
from uwf_git.store.durable import list_names
from uwf_git.store.nodes import (
    FILE_MODE,
    TREE_MODE,
    DamagedNode,
    MissingNode,
    add_nodes,
    check_node,
    decode_node,
    find_blob,
    find_node,
    get_node,
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
    get_entry,
    parse_trailers,
    read_commit,
    read_commit_file,
    subject_of,
    write_commit,
)
from uwf_git.store.objects.objects import ObjectStore, get_blob
from uwf_git.store.objects.pack_file import ByteCache
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import ACTIVE, ARCHIVE, find_head

# Thread messages: a transition record as the trailers of a commit.
#
# Format: FORMAT.md, "The trailers of a thread commit".

_FORMAT = "Uwf-Format"
_FILES = re.compile(r"[0-9a-f]{40}\.\.[0-9a-f]{40}")
_LONGEST_NUMBER = 15


class _Trailer(NamedTuple):
    field: str
    """Of a `TransitionRecord`."""

    fits: Callable[[str], object] = bool
    problem: str = ""
    read: Callable[[str], Any] = str


def _is_natural(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER


def _node(field: str, name: str) -> _Trailer:
    return _Trailer(field, is_node_hash, f"has no node in {name}")


def _thread(field: str) -> _Trailer:
    return _Trailer(field, is_thread_id, "names no thread")


_TRAILERS: Mapping[str, _Trailer] = {
    "Uwf-Thread": _thread("thread"),
    "Uwf-Parent-Thread": _thread("parent_thread"),
    "Uwf-Event": _Trailer("event", EVENTS.__contains__, "has an unknown event"),
    "Uwf-Status": _Trailer("status", STATUSES.__contains__, "has an unknown status"),
    "Uwf-Node": _node("node", "Uwf-Node"),
    "Uwf-Depth": _Trailer("depth", _is_natural, "has no number in Uwf-Depth", int),
    "Uwf-Workflow": _node("workflow", "Uwf-Workflow"),
    "Uwf-Workflow-Name": _Trailer("workflow_name"),
    "Uwf-Role": _Trailer("role"),
    "Uwf-Agent": _Trailer("agent"),
    "Uwf-At": _Trailer("at"),
    "Uwf-Attempt": _Trailer("attempt", _is_natural, "has no number in Uwf-Attempt", int),
    "Uwf-Retries-Left": _Trailer(
        "retries_left",
        {"yes", "no"}.__contains__,
        "says neither yes nor no in Uwf-Retries-Left",
        "yes".__eq__,
    ),
    "Uwf-Turn": _Trailer("turn", is_oid, "names no commit in Uwf-Turn"),
    "Uwf-Files": _Trailer("files", _FILES.fullmatch, "names no two commits in Uwf-Files"),
    "Uwf-Forked-From": _thread("forked_from"),
    "Uwf-Cause": _node("cause", "Uwf-Cause"),
}
"""By name, in the order in which they are written; `Uwf-Format` is the last."""

_REQUIRED = [
    name
    for name, trailer in _TRAILERS.items()
    if trailer.field not in TransitionRecord._field_defaults
]


def build_thread_message(record: TransitionRecord, words: Words) -> bytes:
    """Write the message of a thread commit; the subject is ``<role or event>: <said>``."""
    values = ((name, getattr(record, trailer.field)) for name, trailer in _TRAILERS.items())
    trailers = [(name, _spell(value)) for name, value in values if value not in {None, ""}]
    trailers.append((_FORMAT, str(FORMAT)))
    return build_message(
        record.role or record.event, words.said, body=words.body, trailers=trailers
    )


def _spell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def parse_thread_message(message: bytes) -> TransitionRecord:
    trailers = parse_trailers(message)
    del trailers[_FORMAT]  # checked as it was read
    unlisted = trailers.keys() - _TRAILERS.keys()
    if unlisted:
        raise BadMessage(f"has a trailer that format {FORMAT} does not list: {min(unlisted)}")
    for name in _REQUIRED:
        if name not in trailers:
            raise BadMessage(f"has no {name}")
    fields: dict[str, Any] = {}
    for name, text in trailers.items():
        field, fits, problem, read = _TRAILERS[name]
        if not fits(text):
            raise BadMessage(f"{problem}: {text[:40]!r}")
        fields[field] = read(text)
    return TransitionRecord(**fields)


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
    except RecursionError as error:
        raise NotAPresent("nested too deeply") from error
    except (NotCanonical, ValueError) as error:
        raise NotAPresent(str(error)) from error


# Read a thread at one of its commits: start.json, head.json, now.json and nodes/.
#
# Each node is checked against its name. Parts are read on demand, so a step costs the same at any
# depth.
# Format: FORMAT.md, "The tree of a thread commit".

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
        return get_entry(self.objects, self.commit, name)

    @property
    def subject(self) -> str:
        """The first line of the message."""
        return subject_of(self.commit.message)

    @property
    def body(self) -> str:
        return body_of(self.commit.message)

    def get_node(self, name: NodeHash) -> Node:
        return get_node(self.objects, self.nodes, name)

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
    try:
        return read_at(store.objects, oid)
    except BadMessage as error:
        thread = error.facts.get("thread", "")
        for ref in (ARCHIVE + thread, ACTIVE + thread) if is_thread_id(thread) else ():
            if store.refs.find(ref) == oid:
                raise error.of_commit(oid, ref, path=store.path) from error
        raise


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


get_workflow = partial(_get, parse=parse_workflow)
get_role = partial(_get, parse=parse_role)
get_graph = partial(_get, parse=parse_graph)
get_flow = partial(_get, parse=parse_flow_node)
get_schema = partial(_get, parse=_PAYLOAD)


# Walk the commits of a thread, newest first, along first parents.


def walk_history(store: Store, tip: Oid, *, through_forks: bool = False) -> Iterator[Snapshot]:
    """Yield the snapshots of a thread from *tip* back to its ``start`` or ``fork`` commit.

    With *through_forks* the walk goes on into the thread that was forked.
    """
    oid: Oid | None = tip
    while oid is not None:
        snapshot = read_snapshot(store, oid)
        yield snapshot
        event = snapshot.record.event
        if event == "start" or (event == "fork" and not through_forks):
            return
        oid = next(iter(snapshot.commit.parents), None)


# The threads of which a branch is one, as far as they are in this store.


def find_tip(store: Store, thread: ThreadId) -> Snapshot | None:
    head = find_head(store, thread)
    return None if head is None else read_snapshot(store, head.commit)


def read_trunk(store: Store, snapshot: Snapshot) -> Snapshot | None:
    trunk = snapshot.get_trunk()
    return None if trunk is None else find_tip(store, trunk)


def walk_trunks(store: Store, snapshot: Snapshot) -> Iterator[Snapshot]:
    """Yield the threads around a branch that are here, the nearest first."""
    seen = {snapshot.record.thread}
    while (trunk := read_trunk(store, snapshot)) is not None:
        # Forged threads may be branches of each other.
        if trunk.record.thread in seen:
            raise damaged_commit(trunk.commit.oid, "is of a thread that is around itself")
        seen.add(trunk.record.thread)
        yield trunk
        snapshot = trunk


def read_root(store: Store, snapshot: Snapshot) -> Snapshot:
    """Read the outermost thread here that has this thread as a branch, or else *snapshot*."""
    *_, root = (snapshot, *walk_trunks(store, snapshot))
    return root


# The steps of a thread at one commit, read when they are accessed.
#
# The chain leads from each step to the one before it, so the newest is read without the rest, and
# an older one with those after it. Names are remembered, 80 bytes each; nodes up to a limit in
# bytes. The chain of a branch may go on with the steps before it: those of the thread that split.

MOST_BYTES = 16 * 1024 * 1024
"""How much is remembered of the nodes that were read: some 7,000 small steps."""

# What a node takes in memory beside its text, about.
_NODE_BYTES = 2000


class StepChain:
    """The StepNodes of a thread at one commit, by their place: 0 is the first step.

    For a branch, *before* has how many steps the thread had that split, then the thread around that
    thread, and so on: so many of these steps are the first. Several Python threads may read at
    once.
    """

    def __init__(self, snapshot: Snapshot, before: Sequence[int] = ()) -> None:
        self._snapshot = snapshot
        counts = (snapshot.record.depth, *before)
        self._length = sum(counts)
        self._starts = list(accumulate(counts[:-1]))
        """How many steps are newer than each StartNode of a branch."""

        self._names: list[NodeHash] = []
        """Newest first, as far as the chain was followed."""

        self._marked = snapshot.record.node
        self._nodes: ByteCache[int, Node] = ByteCache(MOST_BYTES)
        self._lock = Lock()

    def __len__(self) -> int:
        return self._length

    def get(self, place: int) -> Node:
        back = self._length - 1 - place
        with self._lock:
            if not self._names:
                self._names.append(self._skip_starts(self._snapshot.record.node, newer=0))
            while len(self._names) <= back:
                self._read(len(self._names) - 1)
            return self._read(back)

    def _read(self, back: int) -> Node:
        """Return the step that is *back* steps before the newest, and learn the name before it."""
        held = self._nodes.get(back)
        if held is not None:
            return held
        name = self._names[back]
        node = self._snapshot.get_node(name)
        previous = find_previous(node)
        if previous is None:
            raise self._snapshot.broken_chain(name)
        if len(self._names) == back + 1:
            self._follow(previous)
        self._nodes.put(back, node, len(repr(node.payload)) + _NODE_BYTES)
        return node

    def _follow(self, previous: NodeHash) -> None:
        """Remember the next older name, unless a forged chain is a cycle (Brent's algorithm)."""
        if previous == self._marked:
            raise self._snapshot.broken_chain(previous)
        self._names.append(self._skip_starts(previous, newer=len(self._names)))
        if len(self._names).bit_count() == 1:
            self._marked = previous

    def _skip_starts(self, name: NodeHash, *, newer: int) -> NodeHash:
        """Return the step that *name*, with so many *newer* steps, stands for.

        The StartNode of a branch stands for the head of the thread that split.
        """
        for _start in range(self._starts.count(newer)):
            node = self._snapshot.get_node(name)
            is_start = node.type == START and isinstance(node.payload, dict)
            parent = find_reference(node.payload.get("parent")) if is_start else None
            if parent is None:
                raise self._snapshot.broken_chain(name)
            name = parent
        return name


# Preserved commits: finished work whose thread had moved on, behind refs/uwf/kept/.
#
# The refs `<thread>/<commit>` protect them from gc; no push takes them along. Format: FORMAT.md,
# "Refs".

KEPT = "refs/uwf/kept/"


def preserve_commit(store: Store, thread: ThreadId, commit: Oid) -> None:
    store.refs.create(_ref(thread, commit), commit)


def list_preserved(store: Store, thread: ThreadId) -> list[Oid]:
    return [Oid(name) for name in store.refs.names(f"{KEPT}{thread}/") if is_oid(name)]


def list_preserved_threads(store: Store) -> list[ThreadId]:
    # names() lists packed refs in subfolders, but loose ones only directly below the prefix.
    found = {name.partition("/")[0] for name in store.refs.names(KEPT) if "/" in name}
    found.update(list_names(os.path.join(store.path, KEPT)))
    return sorted(ThreadId(name) for name in found if is_thread_id(name))


def release(store: Store, thread: ThreadId, commit: Oid) -> None:
    """Remove the ref that preserves *commit*, if there is any: a thread reaches the commit now."""
    if store.refs.find(_ref(thread, commit)) is not None:
        store.refs.delete(_ref(thread, commit), seen=commit)


def _ref(thread: ThreadId, commit: Oid) -> str:
    return f"{KEPT}{thread}/{commit}"


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
