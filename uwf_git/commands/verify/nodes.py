"""Check nodes: does each match its name and its type, and are its references in the commit.

Each blob is checked once in a run, however many refs have it. If two refs have different content
under one name, both are named.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.agents.limited_fork import LimitedRunBug, limits_for, run_limited
from uwf_git.commands.split import Remaking
from uwf_git.commands.verify.history import Finding, Location, walk_back
from uwf_git.engine.flow_move import Rules
from uwf_git.errors import Problem, Refused, StoreDamaged
from uwf_git.model import builtin
from uwf_git.model.builtin import BUILTIN, FLOWS, TYPES, ReferencePlan, find_reference
from uwf_git.model.flow import Position
from uwf_git.model.names import NodeHash, Oid
from uwf_git.model.node import Node, encode
from uwf_git.model.plain_schema import PlainCheck, plain_check, schema_check
from uwf_git.model.workflow_name import check_workflow_name
from uwf_git.store.lookup import NodeFileChange, NodeFolders, TreeEntry, nodes_at, object_id
from uwf_git.store.nodes import TEXT_SUFFIX, MissingNode, decode_node, decode_strictly
from uwf_git.store.objects.objects import ObjectStore, get_blob
from uwf_git.store.objects.pack_file import ByteCache
from uwf_git.store.objects.strict import RecentObjects, StrictCommit
from uwf_git.store.store import Store
from uwf_git.store.workflows import WORKFLOWS

# Check payloads against their schemas, hundreds in one limited child process.
#
# The total time is bounded: a schema that exceeded the limits is not tried again, and after a few
# of them none is. A payload that was not tried is reported, never taken for valid.

_MIB = 1024 * 1024
_MOST_WAITING = 400
_MOST_WAITING_BYTES = 4 * _MIB
# Each costs a second of CPU time; more hostile schemas than this come from a hostile push.
_MOST_REFUSED = 8


class PayloadCheck(NamedTuple):
    """A payload to be checked against a schema, and perhaps its references to be collected."""

    origin: Any

    schema: Node
    """If it is self-typed, the payload must be a JSON Schema too."""

    payload: Any
    size_bytes: int

    wants_references: bool = False


class PayloadResult(NamedTuple):
    origin: Any
    problems: tuple[Problem, ...] = ()
    references: tuple[NodeHash, ...] = ()
    refused: str | None = None
    """Why the check could not run; None if it ran."""


class PayloadChecks:
    def __init__(self) -> None:
        self._waiting: list[PayloadCheck] = []
        self._waiting_bytes = 0
        self._refused: dict[str, str] = {}

    def ask(self, question: PayloadCheck) -> Iterator[PayloadResult]:
        """Queue a check; run the queue when it is long."""
        self._waiting.append(question)
        self._waiting_bytes += question.size_bytes
        if len(self._waiting) >= _MOST_WAITING or self._waiting_bytes >= _MOST_WAITING_BYTES:
            yield from self.answer()

    def answer(self) -> Iterator[PayloadResult]:
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        fresh = [each for each in waiting if self._may_be_tried(each)]
        yield from (self._not_tried(each) for each in waiting if not self._may_be_tried(each))
        try:
            yield from _try(fresh)
        except (Refused, LimitedRunBug):
            # One check exceeded the limits for all of them: run each alone.
            for each in fresh:
                yield from self._answer_one(each)

    def _may_be_tried(self, question: PayloadCheck) -> bool:
        return question.schema.hash not in self._refused and len(self._refused) < _MOST_REFUSED

    def _answer_one(self, question: PayloadCheck) -> Iterator[PayloadResult]:
        if self._may_be_tried(question):
            try:
                yield from _try([question])
            except Refused as error:
                self._refused[question.schema.hash] = error.message
            except LimitedRunBug as bug:
                self._refused[question.schema.hash] = str(bug).strip().rpartition("\n")[2][:200]
            else:
                return
        yield self._not_tried(question)

    def _not_tried(self, question: PayloadCheck) -> PayloadResult:
        name = question.schema.hash
        why = self._refused.get(name, "too many other schemas exceeded the limits")
        return PayloadResult(
            question.origin, refused=f"cannot be checked against schema {name}: {why}"
        )


def _try(questions: list[PayloadCheck]) -> Iterator[PayloadResult]:
    if not questions:
        return
    check_schema, check_value = schema_check.check_schema, schema_check.check_value

    def check(each: PayloadCheck) -> tuple[list[tuple[str, str]], list[str]]:
        schema, payload = each.schema.payload, each.payload
        found = check_schema(payload) if each.schema.is_self_typed else []
        found = found or check_value(schema, payload)
        references = builtin.collect_references(schema, payload) if each.wants_references else ()
        # The answers of a role refer to nothing, whatever its schema has.
        found = found or (builtin.find_unfollowed(schema) if each.wants_references else [])
        return [(problem.path, problem.message) for problem in found], list(references)

    limits = limits_for(sum(each.size_bytes for each in questions))
    what = "the check against the schema"
    answers = run_limited(lambda: [check(each) for each in questions], limits=limits, what=what)
    for each, (problems, references) in zip(questions, answers, strict=True):
        told = tuple(Problem(path, message) for path, message in problems)
        yield PayloadResult(each.origin, told, tuple(NodeHash(name) for name in references))


_TURN_FIELDS = {
    "content": builtin.TEXT,
    "raw": builtin.BYTES,
    "stderr": builtin.TEXT,
    "prompt": builtin.TEXT,
    "trace": builtin.TRACE,
    "agent": builtin.AGENT_CONFIG,
}
_RULED = {"workflow": builtin.WORKFLOW, "agentBinding": builtin.AGENT_CONFIG}
_FIELDS: dict[NodeHash, dict[str, NodeHash]] = {
    builtin.STEP: {**_TURN_FIELDS, "execContext": builtin.AGENT_EXEC_CONTEXT},
    builtin.ATTEMPT: _TURN_FIELDS,
    builtin.START: _RULED,
    builtin.WORKFLOW: {"moderator": builtin.MODERATOR, "flow": builtin.FLOW, "roles": builtin.ROLE},
    builtin.ROLE: {"outputSchema": builtin.META, "workflow": builtin.WORKFLOW},
    builtin.SIGNAL: _RULED,
}
"""The type that the targets of a field must have; readers of threads and workflows rely on it."""

_ID_BYTES = 20
_MOST_KNOWN_BYTES = 16 * 1024 * 1024
_MOST_SHARED = 1000
_LONGEST_KEPT = 4000
# The approximate overhead of a node beside its content.
_KNOWN_BYTES = 500


class _Origin(NamedTuple):
    site: Location
    node: NodeHash
    part: str = ""
    """The checked field of its payload; "" is the whole."""


class Known(NamedTuple):
    node: Node
    """A long text has no payload here; it is seldom needed again."""

    references: tuple[NodeHash, ...] | None
    """The references of its payload; None: to be collected in the limited fork."""


class _Schema(NamedTuple):
    """What is known of a schema, computed once for all payloads."""

    plan: ReferencePlan | None
    is_plainly_valid: PlainCheck


class NodeChecks:
    def __init__(self, objects: ObjectStore, folders: NodeFolders) -> None:
        self._objects, self._folders = objects, folders
        self._refs: list[str] = []
        # From a name to the id of its first blob and the number of that ref, as bytes.
        self._first: dict[NodeHash, bytes] = {}
        # The same of what is in the store, and not checked in this run.
        self._here: dict[NodeHash, bytes] = {}
        self._damaged: set[bytes] = set()
        self._known: ByteCache[bytes, Known] = ByteCache(_MOST_KNOWN_BYTES)
        self._schemas: dict[NodeHash, _Schema] = {}
        self._shared: dict[NodeHash, Node] = {}
        self._payloads = PayloadChecks()

    @property
    def count(self) -> int:
        return len(self._first)

    def check(self, site: Location, change: NodeFileChange) -> Iterator[Finding]:
        """Check a node's file that a commit adds; some findings come only at ``finish``."""
        name, blob = change.name, change.blob
        if name is None or blob is None or blob in self._damaged:
            return
        try:
            known = self.read(site, name, blob)
        except StoreDamaged as error:
            self._damaged.add(blob)
            yield site.finding(error.message, hint=error.hint, node=name)
            return
        first = self._first.get(name) or self._here.get(name)
        is_other = first is not None and not self._is_same(name, first[:_ID_BYTES], blob)
        is_new = is_other or name not in self._first
        if first is not None and is_other:
            yield self._collision(site, change, first)
        elif is_new:
            self._first[name] = self._mark(site.ref, blob)
        if (known.node.type == builtin.TEXT) != change.path.endswith(TEXT_SUFFIX):
            yield site.finding(f"{change.path} has the wrong suffix for what it holds", node=name)
        if not known.node.is_self_typed:
            yield from self._check_type(site, known.node)
        yield from self._check_targets(site, known.node, known.references or ())
        if is_new or known.references is None:
            yield from self._check_payload(site, known)

    def recall(self, ref: str, nodes: bytes) -> None:
        """Note what the folder *nodes* of *ref* has: what comes may not have other payloads."""
        for change in self._folders.compare(None, nodes, keep_old=True):
            if change.name is not None and change.blob is not None:
                self._here.setdefault(change.name, self._mark(ref, change.blob))

    def _mark(self, ref: str, blob: bytes) -> bytes:
        if self._refs[-1:] != [ref]:
            self._refs.append(ref)
        return blob + (len(self._refs) - 1).to_bytes(4, "big")

    def check_part(
        self, site: Location, part: tuple[NodeHash, str], *, schema: Node, value: object
    ) -> Iterator[Finding]:
        """Check a field of a node against a schema; some findings come only at ``finish``."""
        if not self._is_plain(schema, value):
            origin = _Origin(site, part[0], part[1])
            yield from self._ask(PayloadCheck(origin, schema, value, _size(schema.payload, value)))

    def finish(self) -> Iterator[Finding]:
        for answer in self._payloads.answer():
            yield from self._tell(answer)

    def find(self, site: Location, name: NodeHash) -> bytes | None:
        return self._folders.find(site.nodes, name)

    def get(self, site: Location, name: NodeHash) -> Node:
        """Return the node *name* of the commit; a long text without its payload."""
        return self._read_named(site, name).node

    def get_shared(self, site: Location, name: NodeHash) -> Node:
        """Return the node *name*, which many commits share; it need not be in this one."""
        node = self._shared.get(name)
        if node is None:
            blob = self._find_named(site, name)
            known = self._known.get(blob)
            # What it refers to, and how it is written, was checked when it came.
            is_known = known is not None and known.node.hash == name
            node = known.node if known is not None and is_known else self._decode(name, blob)
            if len(self._shared) >= _MOST_SHARED:
                self._shared.clear()
            self._shared[name] = node
        return node

    def get_text(self, site: Location, name: NodeHash) -> str:
        """Return the text of a Text node of the commit; a long one is read again."""
        text = self._read_named(site, name).node.payload
        if text is None:
            text = self._decode(name, self._find_named(site, name)).payload
        return str(text)

    def list_targets(self, site: Location, name: NodeHash) -> tuple[NodeHash, ...]:
        known = self._read_named(site, name)
        return (known.node.type, *(known.references or ()))

    def _find_named(self, site: Location, name: NodeHash) -> bytes:
        blob = self.find(site, name)
        if blob is None:
            raise MissingNode(name)
        return blob

    def _read_named(self, site: Location, name: NodeHash) -> Known:
        return self.read(site, name, self._find_named(site, name))

    def _decode(self, name: NodeHash, blob: bytes) -> Node:
        return decode_node(name, get_blob(self._objects, object_id(blob)))

    def read(self, site: Location, name: NodeHash, blob: bytes) -> Known:
        """Read the node *name* from its blob, or raise ``StoreDamaged`` if it does not match."""
        known = self._known.get(blob)
        if known is not None and known.node.hash == name:
            return known
        content = get_blob(self._objects, object_id(blob))
        node = decode_strictly(name, content)
        is_long = node.type == builtin.TEXT and len(content) > _LONGEST_KEPT
        kept = node._replace(payload=None) if is_long else node
        try:
            known = Known(kept, self._references(site, node))
        except StoreDamaged:
            # Without its type its references are unknown. The missing type is reported here;
            # another commit may have it.
            return Known(kept, ())
        self._known.put(blob, known, _KNOWN_BYTES + (0 if is_long else len(content)))
        return known

    def _references(self, site: Location, node: Node) -> tuple[NodeHash, ...] | None:
        schema = node if node.is_self_typed else self._get_type(site, node.type)
        plan = self._prepare(schema).plan
        try:
            return None if plan is None else tuple(plan(node.payload))
        except RecursionError:
            return None

    def _prepare(self, schema: Node) -> _Schema:
        known = self._schemas.get(schema.hash)
        if known is None:
            if len(self._schemas) >= _MOST_SHARED:
                self._schemas.clear()
            known = _Schema(builtin.plan_references(schema.payload), plain_check(schema.payload))
            self._schemas[schema.hash] = known
        return known

    def _is_plain(self, schema: Node, payload: object) -> bool:
        try:
            return self._prepare(schema).is_plainly_valid(payload)
        except RecursionError:
            return False

    def _get_type(self, site: Location, name: NodeHash) -> Node:
        return TYPES.get(name) or self.get_shared(site, name)

    def _is_same(self, name: NodeHash, first: bytes, blob: bytes) -> bool:
        """Check whether two blobs of one name differ in nothing but the timestamp."""
        if first == blob:
            return True
        with suppress(StoreDamaged):  # of the first, which is told for its ref
            one, other = (self._decode(name, each) for each in (first, blob))
            return (one.type, one.payload) == (other.type, other.payload)
        return True

    def _collision(self, site: Location, change: NodeFileChange, first: bytes) -> Finding:
        other = self._refs[int.from_bytes(first[_ID_BYTES:], "big")]
        blobs = [object_id(each).decode() for each in (first[:_ID_BYTES], change.blob or b"")]
        where = "twice" if other == site.ref else f"in {other} as well"
        return site.finding(
            f"node {change.name} has two payloads: this one, and another {where}",
            hint=f"`git show {blobs[0]}` and `git show {blobs[1]}` show them; change a word where "
            "one of them came from and make it anew, or no thread can ever hold both",
            node=change.name,
        )

    def _check_type(self, site: Location, node: Node) -> Iterator[Finding]:
        try:
            if self.find(site, node.type) is None:
                yield _dangling(site, node.hash, f"its type {node.type}")
                return
            kind = TYPES.get(node.type) or self.get(site, node.type)
            if not (kind.is_self_typed or self._get_type(site, kind.type).is_self_typed):
                message = f"node {node.hash} has the type {node.type}, which is no schema"
                yield site.finding(message, node=node.hash)
        except StoreDamaged:
            return  # reported for the type

    def _check_targets(
        self, site: Location, node: Node, targets: tuple[NodeHash, ...]
    ) -> Iterator[Finding]:
        wanted = _wanted_types(node) if targets else {}
        for target in targets:
            try:
                blob = self.find(site, target)
                if blob is None:
                    yield _dangling(site, node.hash, target)
                    continue
                kinds = wanted.get(target, ())
                found = self.read(site, target, blob).node.type if kinds else None
                wrong = [kind for kind in kinds if found != kind and not {found, kind} <= FLOWS]
            except StoreDamaged:
                continue  # reported for the target
            for kind in wrong:
                told = f"where a node of type {BUILTIN[kind].payload['title']} belongs"
                yield site.finding(f"node {node.hash} refers to {target} {told}", node=node.hash)

    def _check_payload(self, site: Location, known: Known) -> Iterator[Finding]:
        node = known.node
        # A type of uwf was checked when the node was read.
        if node.hash in TYPES or (node.type in TYPES and node.type != builtin.META):
            return
        try:
            schema = node if node.is_self_typed else self._get_type(site, node.type)
        except StoreDamaged:
            return  # reported for the type
        wants = known.references is None
        if wants or schema.is_self_typed or not self._is_plain(schema, node.payload):
            size_bytes = _size(schema.payload, node.payload)
            origin = _Origin(site, node.hash)
            yield from self._ask(PayloadCheck(origin, schema, node.payload, size_bytes, wants))

    def _ask(self, question: PayloadCheck) -> Iterator[Finding]:
        for answer in self._payloads.ask(question):
            yield from self._tell(answer)

    def _tell(self, answer: PayloadResult) -> Iterator[Finding]:
        origin: _Origin = answer.origin
        site, name, part = origin
        if answer.refused is not None:
            yield site.finding(
                f"node {name} {answer.refused}",
                hint=f"`json-cas get {name}` shows it; nothing that this schema is asked of can be "
                "believed",
                node=name,
                path=part or None,
            )
        for problem in answer.problems:
            between = "" if not problem.path or problem.path.startswith("[") else "."
            path = f"{part}{between}{problem.path}" if part else problem.path
            message = f"node {name} breaks its schema{f' at {path}' if path else ''}: "
            yield site.finding(message + problem.message, node=name, path=path or None)
        for target in answer.references:
            try:
                if self.find(site, target) is None:
                    yield _dangling(site, name, target)
            except StoreDamaged:
                continue  # reported for the folder


def _dangling(site: Location, name: NodeHash, target: str) -> Finding:
    message = f"node {name} refers to {target}, which is not in the same commit"
    return site.finding(message, node=name)


def _wanted_types(node: Node) -> dict[NodeHash, dict[NodeHash, None]]:
    """Return the types that each target must have: a node in several fields may miss several."""
    wanted: dict[NodeHash, dict[NodeHash, None]] = {}
    for name, kind in _FIELDS.get(node.type, {}).items():
        value = node.payload.get(name)
        for each in (value, *(value.values() if isinstance(value, dict) else ())):
            if target := find_reference(each):
                wanted.setdefault(target, {})[kind] = None
    return wanted


def _size(schema: object, payload: object) -> int:
    return len(encode([schema, payload]))


# Check a tree: does a commit hold exactly the files that it must.
#
# Of two trees only the folders that differ are read. Format: FORMAT.md,
# "The tree of a thread commit", "The tree of a workflow commit".

NODES = "nodes"

_GONE = {
    "lost": "was in the commit before and is missing",
    "replaced": "was replaced: a node keeps the file it had first",
}
_LOST = (
    "a thread never loses a node: `git show {commit}` names the lost one; the commit before it is "
    "whole"
)


class TreeChecks:
    def __init__(self, store: Store) -> None:
        self._refs = store.refs
        self._recalled: set[str] = set()
        self.objects = store.objects
        self.recent = RecentObjects(store.objects)
        """For what many commits refer to."""
        self.folders = NodeFolders(self.recent)
        self.nodes = NodeChecks(self.recent, self.folders)
        self.rules: dict[NodeHash, Rules] = {}
        self.entries: dict[bytes, Position | None] = {}
        """Of each StartNode, by its blob: where its thread begins in a flow."""
        self.remaking = Remaking()
        """What derived commits are compared with."""
        self.commits = 0
        self.unsigned = 0
        """How many of them have no signature, though somebody made them."""

    def count(self, commit: StrictCommit, *, is_derived: bool = False) -> None:
        self.commits += 1
        self.unsigned += not (commit.is_signed or is_derived)

    def recall(self, name: str, tip: Oid | None = None) -> None:
        """Note the nodes of the workflow *name* that is here, unless it is at *tip*."""
        with suppress(StoreDamaged):  # told for that ref
            here = None if check_workflow_name(name) else self._refs.find(WORKFLOWS + name)
            if here is None or name in self._recalled:
                return
            self._recalled.add(name)
            for oid in () if here == tip else walk_back(self.objects, here, ()).commits:
                if (nodes := nodes_at(self.objects, oid)) is not None:
                    self.nodes.recall(WORKFLOWS + name, nodes)

    def open_top(
        self,
        site: Location,
        tree: bytes,
        wanted: Mapping[str, bytes],
        *,
        others: dict[bytes, TreeEntry] | None = None,
    ) -> tuple[dict[str, bytes], list[Finding]]:
        """Return the *wanted* entries (name to mode) and findings; others go into *others*."""
        try:
            top = self.folders.get(tree)
        except StoreDamaged as error:
            return {}, [site.finding(error.message, hint=error.hint)]
        self.folders.forget(tree)
        found: dict[str, bytes] = {}
        problems: list[str] = []
        for key, entry in top.items():
            name, (mode, raw) = key.decode(errors="backslashreplace"), entry
            if name not in wanted and others is not None:
                others[key] = entry
            elif name not in wanted:
                problems.append(f"the commit has {name}, which does not belong there")
            elif mode != wanted[name]:
                right = wanted[name].decode()
                problems.append(f"{name} has mode {mode.decode()}, and must have {right}")
            else:
                found[name] = raw
        missing = [name for name in wanted if name.encode() not in top]
        problems += [f"the commit has no {name}" for name in missing]
        return found, [site.finding(each) for each in problems]

    def check_needed(
        self, site: Location, cause: NodeHash | None, added: Sequence[NodeHash]
    ) -> Iterator[Finding]:
        left, seen = set(added) - BUILTIN.keys(), set[NodeHash]()
        waiting = [] if cause is None else [cause]
        left.difference_update(waiting)
        try:
            while waiting and left:
                targets = self.nodes.list_targets(site, waiting.pop())
                seen.update(targets)
                found = left.intersection(targets)
                left -= found
                waiting += found
            if left and any(self.nodes.find(site, each) is None for each in seen - BUILTIN.keys()):
                return  # told as the node was checked: what is missing may refer to others
        except StoreDamaged:
            return  # told as the node was checked
        for name in sorted(left):
            message = f"node {name} was added, and nothing that the event adds refers to it"
            yield site.finding(message, node=name)

    def check_builtin(self, site: Location, added: Sequence[NodeHash]) -> Iterator[Finding]:
        """Check that the built-in schemas are there, where a tree that has only *added* begins."""
        for name in sorted(BUILTIN.keys() - set(added)):
            # What cannot be read is told as the folder was compared.
            with suppress(StoreDamaged):
                if self.nodes.find(site, name) is None:
                    title = BUILTIN[name].payload["title"]
                    message = f"the commit has no built-in schema {title}, {name}"
                    yield site.finding(message, node=name)

    def check_nodes(
        self,
        site: Location,
        before: bytes | None,
        added: list[NodeHash] | None = None,
        *,
        keep_before: bool = False,
    ) -> Iterator[Finding]:
        """Check that nothing since *before* was lost or replaced; new names go into *added*.

        With *keep_before*, many threads share the folders before: they are cached.
        """
        if before == site.nodes:
            return
        for change in self.folders.compare(before, site.nodes, keep_old=keep_before):
            if change.kind in {"odd", "damaged"}:
                where = f"{change.path} " if change.kind == "odd" else ""
                yield site.finding(where + change.problem, hint=change.hint, node=change.name)
            elif change.kind in _GONE:
                message = f"node {change.name} {_GONE[change.kind]}"
                hint = _LOST.format(commit=site.commit)
                yield site.finding(message, hint=hint, node=change.name)
            elif change.kind == "added" and added is not None and change.name is not None:
                added.append(change.name)
            yield from self.nodes.check(site, change)
