"""Read nodes by hand: rows, types, `json-cas get`, `cat`, `has`, `refs` and `walk`."""

import binascii
import json
from base64 import b64decode
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from uwf_git.agents.limited_fork import limits_for, run_limited
from uwf_git.commands.admin import Initialized, init_store
from uwf_git.commands.caller import Caller
from uwf_git.errors import Problem, Refused, StoreDamaged, name_some
from uwf_git.model.builtin import (
    BUILTIN,
    BUILTIN_NODES,
    BYTES,
    META,
    TEXT,
    FindReference,
    collect_references,
    direct_references,
    find_misspelled,
    find_reference,
    find_unfollowed,
)
from uwf_git.model.names import NodeHash, fold, is_node_hash, parse_node_prefix
from uwf_git.model.node import Node, build_node, canonical, encode, typed_hash
from uwf_git.model.plain_schema import is_plainly_valid, schema_check
from uwf_git.model.text import cut, first_line
from uwf_git.store.lookup import (
    NODES_REF,
    NodeLookup,
    NodeRoot,
    NoSuchNode,
    list_nodes,
    open_root,
    put_nodes,
)
from uwf_git.store.nodes import NodeCollision, decode_strictly
from uwf_git.store.store import Store

# Find the schema node of a type by name or hash.
#
# A schema is a meta-schema, or a node whose type is a meta-schema.

BUILTIN_TYPES: dict[str, NodeHash] = {node.payload["title"]: node.hash for node in BUILTIN_NODES}
"""The built-in schemas by their names: ``Text``, ``Role``, …"""


def find_plain_type(text: str) -> NodeHash | None:
    """Return the type that *text* names without a store: a built-in name, or a whole hash."""
    if text in BUILTIN_TYPES:
        return BUILTIN_TYPES[text]
    folded = fold(text)
    return NodeHash(folded) if is_node_hash(folded) else None


def resolve_type(lookup: NodeLookup, text: str) -> NodeHash:
    """Find the type *text*: a built-in name, a hash, or a unique prefix of a hash."""
    return find_plain_type(text) or lookup.resolve(parse_node_prefix(text))


def get_schema(lookup: NodeLookup, name: NodeHash) -> Node:
    node = lookup.get_type(name)
    if not is_schema(lookup, node):
        raise Refused(
            f"node {node.hash} is not a schema: it is of type {node.type}",
            code="not-a-schema",
            hint="`json-cas schema list` names the schemas; `json-cas schema put FILE` adds one",
            node=node.hash,
            type=node.type,
        )
    return node


def is_schema(lookup: NodeLookup, node: Node) -> bool:
    if node.is_self_typed:
        return True
    with suppress(NoSuchNode):
        return lookup.get_type(node.type).is_self_typed
    return False


def hash_payload(
    type_text: str | None, payload: Any, *, open_store: Callable[[], Store]
) -> NodeHash:
    """Return the name of a node with *payload*; *type_text* None is for a meta-schema."""
    if type_text is None:
        return typed_hash(None, payload)
    type_hash = find_plain_type(type_text) or resolve_type(NodeLookup(open_store()), type_text)
    return typed_hash(type_hash, payload)


# Rows: a node in one line; a missing or damaged node is a row that says so.

_LONGEST = 72
# The fields that name most nodes, the first present one counts.
_NAMES = ("title", "name", "role", "command", "prompt")


class NodeRow(NamedTuple):
    hash: NodeHash
    type: NodeHash | None
    """None if the node cannot be read."""

    type_name: str | None
    """The title of its schema; None without a title, or if the schema cannot be read."""

    summary: str
    """One line of the payload; "" if the node cannot be read."""

    problem: str | None = None
    """Why the node cannot be read; None if it can."""


def build_row(lookup: NodeLookup, name: NodeHash) -> tuple[NodeRow, Node | None]:
    try:
        node = lookup.find(name)
    except StoreDamaged as error:
        return NodeRow(name, None, None, "", error.message), None
    if node is None:
        return NodeRow(name, None, None, "", NoSuchNode(name).message), None
    return NodeRow(name, node.type, find_type_name(lookup, node), summarize(node)), node


def find_title(payload: Any) -> str | None:
    title = payload.get("title") if isinstance(payload, dict) else None
    return " ".join(title.split()) or None if isinstance(title, str) else None


def find_type_name(lookup: NodeLookup, node: Node) -> str | None:
    """Return the title of the schema of *node*; None without a title, or if it cannot be read."""
    with suppress(NoSuchNode, StoreDamaged):
        return find_title(lookup.get_type(node.type).payload)
    return None


def summarize(node: Node) -> str:
    return cut(_words(node.payload), _LONGEST)


def _words(payload: Any) -> str:
    if isinstance(payload, str):
        return first_line(payload)
    if isinstance(payload, dict):
        for key in _NAMES:
            value = payload.get(key)
            if isinstance(value, str) and first_line(value):
                return first_line(value)
    # Stop after one line: a large payload need not be rendered whole.
    parts = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": ")).iterencode(payload)
    text = ""
    for part in parts:
        text += part
        if len(text) > _LONGEST:
            break
    return text


# `json-cas get`, `cat`, `has`, `refs` and `walk`: read nodes.
#
# *text* is a hash or a unique prefix. A missing or damaged node on a walk is a row that says so.


class Reached(NamedTuple):
    depth: int
    """The length of the shortest path of references."""

    parent: NodeHash | None
    """The node through which it was reached first; None for the start of the walk."""

    node: NodeRow


def walk_nodes(store: Store, text: str) -> list[Reached]:
    """List the node *text* and all nodes that it reaches, each once, nearest first."""
    lookup = NodeLookup(store)
    first = lookup.get(lookup.resolve(parse_node_prefix(text))).hash
    reached: list[Reached] = []
    seen = {first}
    waiting: deque[tuple[int, NodeHash | None, NodeHash]] = deque([(0, None, first)])
    while waiting:
        depth, parent, name = waiting.popleft()
        row, node = build_row(lookup, name)
        targets: list[NodeHash] = []
        if node is not None:
            try:
                targets = list_targets(lookup, node)
            except StoreDamaged:
                # Its type is damaged; that node's own row says so.
                targets = [node.type]
            except Refused as error:
                row, targets = row._replace(problem=error.message), [node.type]
        reached.append(Reached(depth, parent, row))
        for target in targets:
            if target not in seen:
                seen.add(target)
                waiting.append((depth + 1, name, target))
    return reached


class Reference(NamedTuple):
    as_type: bool

    target: NodeRow


def list_references(store: Store, text: str) -> list[Reference]:
    """List the references of the node *text*, its type first."""
    lookup = NodeLookup(store)
    node = lookup.get(lookup.resolve(parse_node_prefix(text)))
    return [
        Reference(target == node.type, build_row(lookup, target)[0])
        for target in list_targets(lookup, node)
    ]


class Presence(NamedTuple):
    hash: str
    """Its name; of an absent node, the text that was given."""

    exists: bool


def has_node(store: Store, text: str) -> Presence:
    prefix = parse_node_prefix(text)
    lookup = NodeLookup(store)
    try:
        name = lookup.resolve(prefix)
    except NoSuchNode:
        return Presence(prefix, exists=False)
    return Presence(name, exists=lookup.find(name) is not None)


class FoundNode(NamedTuple):
    node: Node
    type_name: str | None


def get_node(store: Store, text: str) -> FoundNode:
    lookup = NodeLookup(store)
    node = lookup.get(lookup.resolve(parse_node_prefix(text)))
    return FoundNode(node, find_type_name(lookup, node))


class Content(NamedTuple):
    payload: Any
    raw: bytes | None
    """The bytes of a Text or Bytes node; None for any other node."""


def cat_node(store: Store, text: str) -> Content:
    node = get_node(store, text).node
    return Content(node.payload, _raw(node))


def _raw(node: Node) -> bytes | None:
    if not isinstance(node.payload, str):
        return None
    if node.type == TEXT:
        return node.payload.encode()
    if node.type == BYTES:
        with suppress(binascii.Error, ValueError):
            # The schema says base64, but validators do not decode.
            return b64decode(node.payload, validate=True)
    return None


# Put nodes by hand: check payloads against their types, store them, bootstrap a store.
#
# A schema that is not built in is only evaluated in a limited child process: a pattern in it may
# run forever.


def check_payload(type_node: Node, payload: Any) -> None:
    """Refuse a payload that breaks its type, or in which a reference would not be found."""
    _check_problems(type_node, payload)
    for name in _collect_references(type_node.payload, payload, find_misspelled):
        raise Refused(
            f"a reference in the payload is not spelled as the name is: {name}",
            code="misspelled-reference",
            hint=f"write {name}: in a payload only that spelling keeps the node",
            node=name,
        )


def _evaluate(work: Callable[[], Any], *values: Any, what: str) -> Any:
    return run_limited(work, limits=limits_for(len(encode([*values]))), what=what)


# Names in a schema with which the search for references may take long: of patterns and anchors.
_SLOW = [encode(each) for each in ("patternProperties", "$anchor", "$dynamicAnchor")]


def _collect_references(
    schema: Any, payload: Any, find: FindReference = find_reference
) -> list[NodeHash]:
    def collect() -> list[NodeHash]:
        return collect_references(schema, payload, find)

    whole = encode(schema)
    if not any(each in whole for each in _SLOW):
        return collect()
    found: list[NodeHash] = _evaluate(collect, schema, payload, what="the search for references")
    return found


def list_targets(lookup: NodeLookup, node: Node) -> list[NodeHash]:
    """List the references of *node*: its type, then those in its payload.

    If the type is missing, list the type alone: it defines which fields are references.
    """
    collect = collect_references if node.type in BUILTIN else _collect_references
    with suppress(NoSuchNode):
        return direct_references(node, lookup.get_type, collect)
    return [node.type]


def _check_problems(type_node: Node, payload: Any) -> None:
    problems = find_problems(type_node, payload)
    if problems:
        first = problems[0]
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems, the first"
        problem = f"{count} at {first.path or 'the top'}: {first.message}"
        if type_node.is_self_typed:
            message = f"this is not a JSON Schema: {problem}"
            hint = "schemas are JSON Schema 2020-12: https://json-schema.org/draft/2020-12"
        else:
            message = f"the payload breaks schema {type_node.hash}: {problem}"
            hint = f"`json-cas schema get {type_node.hash}` shows the schema"
        raise Refused(
            message,
            code="invalid-payload",
            hint=hint,
            type=type_node.hash,
            problems=[{"path": each.path, "message": each.message} for each in problems],
        )


def find_problems(type_node: Node, payload: Any) -> list[Problem]:
    """List where *payload* does not fit *type_node*; if that is the meta-schema, as a schema."""
    schema = type_node.payload
    with suppress(RecursionError):
        if not type_node.is_self_typed and is_plainly_valid(schema, payload):
            return []
    # jsonschema takes 90 ms to import, which a plainly valid payload saves.
    check_schema, check_value = schema_check.check_schema, schema_check.check_value

    def check() -> list[tuple[str, str]]:
        found = check_schema(payload) if type_node.is_self_typed else []
        found = found or check_value(schema, payload)
        # An older schema, or that of a role, was not judged when it was put.
        found = found or find_unfollowed(payload if type_node.is_self_typed else schema)
        return [(each.path, each.message) for each in found]

    # The payload of a meta-schema is a foreign schema; checking it compiles its patterns.
    if type_node.hash in BUILTIN and not type_node.is_self_typed:
        found = check()
    else:
        found = _evaluate(check, schema, payload, what="the check against the schema")
    return [Problem(path, message) for path, message in found]


# `json-cas put`: a node goes to refs/cas/nodes with all nodes that it reaches.
#
# refs/cas/nodes is closed under references, so that git's gc keeps the nodes and a push of that
# ref shares them. A node that it has is therefore not walked again.


def keep_node(store: Store, caller: Caller, lookup: NodeLookup, node: Node) -> None:
    """Put *node* and its closure at refs/cas/nodes; nodes that are there stay as they are."""
    by_hand = open_root(store, NODES_REF)
    closure: dict[NodeHash, Node] = {}
    missing: dict[NodeHash, NodeHash] = {}
    waiting = deque([node])
    while waiting:
        each = waiting.popleft()
        if each.hash in closure:
            continue
        closure[each.hash] = each
        for target in list_targets(lookup, each):
            if target in BUILTIN or (by_hand is not None and by_hand.lists(target)):
                continue
            found = lookup.find(target)
            if found is None:
                missing.setdefault(target, each.hash)
            else:
                waiting.append(found)
    if missing:
        named = [
            name if holder == node.hash else f"{name} (from {holder})"
            for name, holder in missing.items()
        ]
        what = "a node that is" if len(named) == 1 else f"{len(named)} nodes that are"
        raise Refused(
            f"node {node.hash} refers to {what} not in this store: {name_some(named)}",
            code="dangling-references",
            hint="put these nodes first",
            node=node.hash,
            missing=list(missing),
        )
    put_nodes(store, list(closure.values()), caller.signing(store))


class PutNode(NamedTuple):
    hash: NodeHash
    new: bool
    """Whether no ref held it before."""


def put_payload(store: Store, caller: Caller, type_text: str | None, payload: Any) -> PutNode:
    """Store *payload* as a node of the type *type_text*, once; None makes a meta-schema."""
    lookup = NodeLookup(store)
    now_ms = caller.now_ms()
    if type_text is None:
        node = type_node = build_node(None, payload, timestamp=now_ms)
    else:
        type_node = get_schema(lookup, resolve_type(lookup, type_text))
        node = build_node(type_node.hash, payload, timestamp=now_ms)
    check_payload(type_node, node.payload)
    present = _find_same(lookup, node)
    keep_node(store, caller, lookup, present or node)
    return PutNode(node.hash, new=present is None)


def _find_same(lookup: NodeLookup, node: Node) -> Node | None:
    try:
        present = lookup.find(node.hash)
    except StoreDamaged:
        # All copies in the store are damaged; the new one is whole.
        return None
    if present is not None and (present.type, present.payload) != (node.type, node.payload):
        raise NodeCollision(node.hash)
    return present


# `json-cas bootstrap` and `init`: put the built-in schemas into a store.


def bootstrap_store(store: Store, caller: Caller) -> None:
    """Put the built-in schemas at refs/cas/nodes, readable before there is any thread."""
    put_nodes(store, [], caller.signing(store))


def init_cas(path: str | None, caller: Caller) -> Initialized:
    made = init_store(path, caller.cwd, caller.environ)
    bootstrap_store(made.store, caller)
    return made


# `json-cas schema` and `json-cas verify`: schemas, and nodes checked against them.
#
# The list has the built-in schemas and schemas put by hand, not the schemas of roles in workflows.


class SchemaRow(NamedTuple):
    hash: NodeHash
    title: str | None

    builtin: bool
    problem: str | None = None
    """Why the node cannot be read; such a node may be no schema."""


def list_schemas(store: Store, *, limit: int | None = None) -> list[SchemaRow]:
    """List the built-in schemas, then the others by title; a damaged node gets a row as well."""
    rows = [SchemaRow(each.hash, find_title(each.payload), builtin=True) for each in BUILTIN_NODES]
    by_hand = open_root(store, NODES_REF)
    lookup = NodeLookup(store)
    others: list[SchemaRow] = []
    for name in list_nodes(store):
        if name not in BUILTIN and by_hand is not None:
            others += _rows(by_hand, lookup, name)
    others.sort(key=lambda row: (row.title is None, row.title or "", row.hash))
    return [*rows, *others][:limit]


def _rows(by_hand: NodeRoot, lookup: NodeLookup, name: NodeHash) -> list[SchemaRow]:
    try:
        node = by_hand.find(name)
        if node is None or not is_schema(lookup, node):
            return []
    except StoreDamaged as error:
        return [SchemaRow(name, None, builtin=False, problem=error.message)]
    return [SchemaRow(name, find_title(node.payload), builtin=False)]


class NodeValidation(NamedTuple):
    schema: NodeHash
    problems: tuple[Problem, ...]


def validate_node(
    store: Store, text: str, read_value: Callable[[], Any] | None = None
) -> NodeValidation:
    """Check the node *text* against its type, or what *read_value* returns against it."""
    lookup = NodeLookup(store)
    name = resolve_type(lookup, text)
    if read_value is not None:
        schema = get_schema(lookup, name)
        payload = canonical(read_value())
    else:
        node = lookup.get(name)
        schema = get_schema(lookup, node.type)
        payload = node.payload
    return NodeValidation(schema.hash, tuple(find_problems(schema, payload)))


def put_schema(store: Store, caller: Caller, schema: Any) -> PutNode:
    return put_payload(store, caller, META, schema)


def get_schema_payload(store: Store, text: str) -> Any:
    """Return the JSON Schema *text*: a built-in name, a hash, or a unique prefix of a hash."""
    lookup = NodeLookup(store)
    return get_schema(lookup, resolve_type(lookup, text)).payload


# `json-cas verify`: hash every copy of a node again, and check its type and references.
#
# Threads are checked by `uwf verify`.


class NodeFinding(NamedTuple):
    node: NodeHash
    message: str
    ref: str | None = None
    """The ref whose copy is damaged; None if the problem is in the node itself."""

    path: str | None = None
    """The place in the payload; None for the whole node."""


class NodeVerification(NamedTuple):
    checked: tuple[NodeHash, ...]
    findings: tuple[NodeFinding, ...]


def verify_nodes(store: Store, texts: list[str]) -> NodeVerification:
    lookup = NodeLookup(store)
    checked = tuple(dict.fromkeys(lookup.resolve(parse_node_prefix(text)) for text in texts))
    findings = [finding for name in checked for finding in _verify(lookup, name)]
    return NodeVerification(checked, tuple(findings))


def _verify(lookup: NodeLookup, name: NodeHash) -> list[NodeFinding]:
    node, first = BUILTIN.get(name), "the built-in schemas"
    findings: list[NodeFinding] = []
    for root in lookup.roots():
        problem = None
        try:
            found = root.find(name, decode_strictly)
        except StoreDamaged as error:
            # A tree that cannot be read may not have had this node.
            found, problem = None, error.message if root.lists(name) else None
        if node is None:
            node, first = found, root.ref
        elif found is not None and (found.type, found.payload) != (node.type, node.payload):
            problem = f"it has two payloads: this one, and another in {first}"
        # Several versions of a workflow may have the same file.
        if problem and (finding := NodeFinding(name, problem, ref=root.ref)) not in findings:
            findings.append(finding)
    if node is not None:
        findings += _verify_type(lookup, node) + _verify_references(lookup, node)
    elif not findings:
        findings.append(NodeFinding(name, NoSuchNode(name).message))
    return findings


def _verify_type(lookup: NodeLookup, node: Node) -> list[NodeFinding]:
    try:
        type_node = node if node.is_self_typed else lookup.get_type(node.type)
        if not is_schema(lookup, type_node):
            return [NodeFinding(node.hash, f"its type {node.type} is not a schema")]
        problems = find_problems(type_node, node.payload)
    except NoSuchNode:
        return []  # reported as a reference
    except (StoreDamaged, Refused) as error:
        return [NodeFinding(node.hash, f"it cannot be checked against its type: {error.message}")]
    return [
        NodeFinding(node.hash, f"it breaks its schema: {each.message}", path=each.path)
        for each in problems
    ]


def _verify_references(lookup: NodeLookup, node: Node) -> list[NodeFinding]:
    findings: list[NodeFinding] = []
    try:
        targets = list_targets(lookup, node)
    except StoreDamaged:
        return []  # reported with the type
    except Refused as error:
        return [NodeFinding(node.hash, error.message)]
    for target in targets:
        what = "its type is" if target == node.type else "it refers to"
        try:
            if lookup.find(target) is None:
                findings.append(
                    NodeFinding(node.hash, f"{what} {target}, which is not in this store")
                )
        except StoreDamaged as error:
            findings.append(NodeFinding(node.hash, f"{what} {target}, but {error.message}"))
    return findings
