"""Check nodes: does each match its name and its type, and are its references in the commit.

Each blob is checked once in a run, however many refs have it. If two refs have different content
under one name, both are named.
"""

from collections.abc import Iterator
from typing import NamedTuple

from uwf_git.commands.verify.finding import Finding, Location
from uwf_git.commands.verify.payloads import PayloadCheck, PayloadChecks, PayloadResult
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import (
    AGENT_CONFIG,
    AGENT_EXEC_CONTEXT,
    ATTEMPT,
    BUILTIN,
    BYTES,
    FLOW,
    META,
    MODERATOR,
    ROLE,
    SIGNAL,
    START,
    STEP,
    TEXT,
    TRACE,
    WORKFLOW,
)
from uwf_git.model.canonical import encode
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.model.plain_schema import PlainCheck, plain_check
from uwf_git.model.references import ReferencePlan, find_reference, plan_references
from uwf_git.store.nodes.blob import TEXT_SUFFIX, DamagedNode, decode_node, encode_node
from uwf_git.store.nodes.folders import NodeFileChange, NodeFolders, object_id
from uwf_git.store.nodes.tree import MissingNode
from uwf_git.store.objects.byte_cache import ByteCache
from uwf_git.store.objects.objects import ObjectStore, get_blob

_TURN_FIELDS = {
    "content": TEXT,
    "raw": BYTES,
    "stderr": TEXT,
    "prompt": TEXT,
    "trace": TRACE,
    "agent": AGENT_CONFIG,
}
_FIELDS: dict[NodeHash, dict[str, NodeHash]] = {
    STEP: {**_TURN_FIELDS, "execContext": AGENT_EXEC_CONTEXT},
    ATTEMPT: _TURN_FIELDS,
    START: {"workflow": WORKFLOW},
    WORKFLOW: {"moderator": MODERATOR, "flow": FLOW},
    ROLE: {"outputSchema": META, "workflow": WORKFLOW},
    SIGNAL: {"workflow": WORKFLOW},
}
"""The type that the target of a field must have; readers of threads and workflows rely on it."""

_FIELDS_OF_MANY: dict[NodeHash, dict[str, NodeHash]] = {
    START: {"agentBinding": AGENT_CONFIG},
    WORKFLOW: {"roles": ROLE},
    SIGNAL: {"agentBinding": AGENT_CONFIG},
}

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
            first = self._first.get(name)
            is_new = first is None or not self._is_same(name, first[:_ID_BYTES], blob)
        except StoreDamaged as error:
            self._damaged.add(blob)
            yield site.finding(error.message, hint=error.hint, node=name)
            return
        if first is None:
            self._first[name] = blob + self._number(site.ref).to_bytes(4, "big")
        elif is_new:
            yield self._collision(site, change, first)
        if (known.node.type == TEXT) != change.path.endswith(TEXT_SUFFIX):
            yield site.finding(f"{change.path} has the wrong suffix for what it holds", node=name)
        if not known.node.is_self_typed:
            yield from self._check_type(site, known.node)
        yield from self._check_targets(site, known.node, known.references or ())
        if is_new or known.references is None:
            yield from self._check_payload(site, known)

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
        node = decode_node(name, content)
        if encode_node(node)[1] != content:
            raise DamagedNode(name, "is not written as uwf writes it")
        is_long = node.type == TEXT and len(content) > _LONGEST_KEPT
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
            known = _Schema(plan_references(schema.payload), plain_check(schema.payload))
            self._schemas[schema.hash] = known
        return known

    def _is_plain(self, schema: Node, payload: object) -> bool:
        try:
            return self._prepare(schema).is_plainly_valid(payload)
        except RecursionError:
            return False

    def _get_type(self, site: Location, name: NodeHash) -> Node:
        return BUILTIN.get(name) or self.get_shared(site, name)

    def _is_same(self, name: NodeHash, first: bytes, blob: bytes) -> bool:
        """Check whether two blobs of one name differ in nothing but the timestamp."""
        if first == blob:
            return True
        one, other = (self._decode(name, each) for each in (first, blob))
        return (one.type, one.payload) == (other.type, other.payload)

    def _number(self, ref: str) -> int:
        if not self._refs or self._refs[-1] != ref:
            self._refs.append(ref)
        return len(self._refs) - 1

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
            elif not self._is_schema(site, node.type):
                yield site.finding(
                    f"node {node.hash} has the type {node.type}, which is no schema", node=node.hash
                )
        except StoreDamaged:
            return  # reported for the type

    def _is_schema(self, site: Location, name: NodeHash) -> bool:
        if name in BUILTIN:
            return True
        node = self.get(site, name)
        return node.is_self_typed or self._get_type(site, node.type).is_self_typed

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
                kind = wanted.get(target)
                if kind is None or self.read(site, target, blob).node.type == kind:
                    continue
            except StoreDamaged:
                continue  # reported for the target
            title = BUILTIN[kind].payload["title"]
            message = f"node {node.hash} refers to {target} where a node of type {title} belongs"
            yield site.finding(message, node=node.hash)

    def _check_payload(self, site: Location, known: Known) -> Iterator[Finding]:
        node = known.node
        # A built-in type was checked when the node was read.
        if node.hash in BUILTIN or (node.type in BUILTIN and node.type != META):
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
            path = _join(part, problem.path)
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


def _wanted_types(node: Node) -> dict[NodeHash, NodeHash]:
    wanted: dict[NodeHash, NodeHash] = {}
    for field, kind in _FIELDS.get(node.type, {}).items():
        target = find_reference(node.payload.get(field))
        if target is not None:
            wanted[target] = kind
    for field, kind in _FIELDS_OF_MANY.get(node.type, {}).items():
        for value in node.payload.get(field, {}).values():
            target = find_reference(value)
            if target is not None:
                wanted[target] = kind
    return wanted


def _size(schema: object, payload: object) -> int:
    return len(encode([schema, payload]))


def _join(part: str, path: str) -> str:
    return f"{part}{'' if not path or path.startswith('[') else '.'}{path}" if part else path
