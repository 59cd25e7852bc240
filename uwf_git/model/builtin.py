"""Built-in schemas: the types of the nodes that uwf writes (seed 000, section 2).

A built-in node is the same blob everywhere (its timestamp is 0). Changing a schema here changes its
name, and old threads keep the old name: add a version, never edit a schema that shipped.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import unquote

from uwf_git.errors import Problem
from uwf_git.model.limits import LIMITS
from uwf_git.model.names import PATTERN, NodeHash, fold, is_node_hash
from uwf_git.model.node import Node, build_node, encode

_SCHEMA: dict[str, Any] = {"type": ["object", "boolean"]}
_SCHEMAS: dict[str, Any] = {"type": "array", "items": _SCHEMA}
_NAMED_SCHEMAS: dict[str, Any] = {"type": "object", "additionalProperties": _SCHEMA}
_TEXT: dict[str, Any] = {"type": "string"}

# A real JSON Schema, and valid against itself. It checks the keywords that hold schemas or mark
# references; the validator checks the rest of 2020-12 when a schema is put.
META_SCHEMA: dict[str, Any] = {
    "title": "JSON Schema",
    "description": "The type of every schema node, and of this node itself: JSON Schema 2020-12",
    "type": ["object", "boolean"],
    "properties": {
        "title": _TEXT,
        "description": _TEXT,
        "format": _TEXT,
        "properties": _NAMED_SCHEMAS,
        "patternProperties": _NAMED_SCHEMAS,
        "additionalProperties": _SCHEMA,
        "items": _SCHEMA,
        "prefixItems": _SCHEMAS,
        "anyOf": _SCHEMAS,
        "oneOf": _SCHEMAS,
        "allOf": _SCHEMAS,
        "if": _SCHEMA,
        "then": _SCHEMA,
        "else": _SCHEMA,
        "not": _SCHEMA,
        "required": {"type": "array", "items": _TEXT},
        "enum": {"type": "array"},
    },
}


# References: which nodes a payload refers to.
#
# Only a place whose schema has ``format: cas_ref`` is a reference, so a ``$ref`` inside a role's
# own JSON Schema is not one. json-cas collects the same way and writes references as bare
# strings. Format: FORMAT.md, "References".


FindReference = Callable[[Any], NodeHash | None]


def reference(target: NodeHash) -> dict[str, str]:
    return {"$ref": target}


def find_reference(value: Any) -> NodeHash | None:
    """Read a reference in either spelling: ``{"$ref": name}``, or json-cas's bare name."""
    target = _target(value)
    return NodeHash(target) if is_node_hash(target) else None


def _target(value: Any) -> str:
    target = value.get("$ref") if isinstance(value, dict) and len(value) == 1 else value
    return target if isinstance(target, str) else ""


def find_misspelled(value: Any) -> NodeHash | None:
    """Read what would be a reference in capitals: commands take any spelling, payloads one."""
    target = _target(value)
    folded = fold(target)
    # Without a digit it is a word: `accommodation`.
    is_name = is_node_hash(folded) and any(map(str.isdigit, target))
    return NodeHash(folded) if folded != target and is_name else None


def collect_references(
    schema: Any, payload: Any, find: FindReference = find_reference
) -> list[NodeHash]:
    """List the nodes that *payload* refers to, in their order there, each once.

    Every branch of ``anyOf``, ``oneOf``, ``allOf`` and ``if/then/else`` is followed, valid or not:
    keeping a node too many costs bytes, losing a node costs the thread.
    """
    return list(dict.fromkeys(_collect(schema, [schema], payload, find)))


def _collect(root: Any, schemas: list[Any], value: Any, find: FindReference) -> Iterator[NodeHash]:
    """Collect from *value*, to which all of *schemas* apply.

    The schemas are followed together, each once: singly, two that lead to each other would double
    the work at every level.
    """
    places = _schemas_of_place(root, schemas)
    if any(place.get("format") == "cas_ref" for place in places):
        target = find(value)
        if target is not None:
            yield target
    if isinstance(value, dict):
        for name, item in value.items():
            inner = [each for place in places for each in _schemas_of_property(place, name)]
            yield from _collect(root, inner, item, find)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            inner = [each for place in places for each in _schemas_of_item(place, index)]
            yield from _collect(root, inner, item, find)


def _schemas_of_place(root: Any, schemas: list[Any]) -> list[dict[str, Any]]:
    """List every schema that applies to the same place as *schemas*, each once."""
    found: dict[int, dict[str, Any]] = {}
    waiting = list(schemas)
    while waiting:
        part = waiting.pop()
        # Schemas may refer to one another in a circle; identity ends it.
        if not isinstance(part, dict) or id(part) in found:
            continue
        found[id(part)] = part
        waiting += _alternatives(part)
        waiting += _mapping(part.get("dependentSchemas")).values()
        pointers = (part.get("$ref"), part.get("$dynamicRef"))
        waiting += [follow_reference(root, pointer) for pointer in pointers]
    return list(found.values())


def _alternatives(schema: dict[str, Any]) -> Iterator[Any]:
    yield from (schema.get(keyword) for keyword in ("if", "then", "else"))
    for keyword in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(keyword)
        yield from branches if isinstance(branches, list) else ()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def follow_reference(root: Any, pointer: Any) -> Any:
    """Return what a ``$ref`` names in the schema *root* (``#``, RFC 6901, anchor), or None."""
    if not isinstance(pointer, str) or not pointer.startswith("#"):
        return None
    fragment = unquote(pointer[1:])
    if fragment and not fragment.startswith("/"):
        return _find_anchor(root, fragment)
    target = root
    for part in fragment.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        # Python refuses to read integers of more than 4,300 digits.
        if isinstance(target, list) and key.isdecimal() and int(key[:9]) < len(target):
            target = target[int(key[:9])]
        else:
            target = target.get(key) if isinstance(target, dict) else None
    return target


def find_unfollowed(root: Any) -> list[Problem]:
    """Return what in the schema *root* may hide a reference to a node, if there is anything.

    ``follow_reference`` knows no ``$id``: with any below the top, ``#`` may be another place.
    """
    if encode({"format": "cas_ref"})[1:] not in encode(root) or plan_references(root) is not None:
        return []
    hides = "in a schema with cas_ref hides references to nodes"
    waiting = [root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if part is not root and isinstance(part.get("$id"), str):
                return [Problem("", f"$id {part['$id']!r} below the top {hides}")]
            for keyword in ("$ref", "$dynamicRef"):
                pointer = part.get(keyword)
                # A name is no pointer but a reference, in a default or an example.
                is_pointer = isinstance(pointer, str) and not is_node_hash(pointer)
                is_own = not str(pointer).startswith("https://json-schema.org/draft/")
                if is_pointer and is_own and follow_reference(root, pointer) is None:
                    return [Problem("", f"{keyword} {pointer!r} {hides}")]
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return []


def _find_anchor(root: Any, anchor: str) -> Any:
    waiting = [root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if anchor in (part.get("$anchor"), part.get("$dynamicAnchor")):
                return part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return None


def _schemas_of_property(schema: dict[str, Any], name: str) -> Iterator[Any]:
    properties = _mapping(schema.get("properties"))
    patterns = _mapping(schema.get("patternProperties"))
    own = [properties[name]] if name in properties else []
    own += [part for pattern, part in patterns.items() if _may_match(pattern, name)]
    yield from own or [schema.get("additionalProperties")]
    yield schema.get("unevaluatedProperties")


def _may_match(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:
        # Python cannot compile every ECMA expression: rather one reference too many.
        return True


def _schemas_of_item(schema: dict[str, Any], index: int) -> Iterator[Any]:
    prefix, items = schema.get("prefixItems"), schema.get("items")
    if isinstance(prefix, list) and index < len(prefix):
        yield prefix[index]
    elif isinstance(items, list):
        # Drafts before 2020-12 wrote it so, and json-cas's nodes may be as old.
        yield items[index] if index < len(items) else schema.get("additionalItems")
    else:
        yield items
    yield schema.get("contains")
    yield schema.get("unevaluatedItems")


# Reference plans: where a schema's references are, found once for all its payloads.
#
# A plan returns exactly what ``collect_references`` does (a property test compares them), for a
# StepNode in a ninth of the time. A schema that could make collecting slow or endless (patterns,
# pointers into itself) has no plan.

# With these the places depend on the payload, or lead back into the schema.
_UNPLANNED = {
    "$dynamicRef", "$ref", "additionalItems", "contains", "dependentSchemas", "patternProperties",
    "prefixItems", "unevaluatedItems", "unevaluatedProperties",
}  # fmt: skip
_MOST_PLACES = 2000


class _Unplanned(Exception):
    """The schema has no plan."""


class _Place(NamedTuple):
    is_reference: bool
    properties: "Mapping[str, _Place | None]"
    additional: "_Place | None"
    items: "_Place | None"


ReferencePlan = Callable[[Any], list[NodeHash]]
"""From a payload to the nodes that it refers to, in their order there, each once."""


def plan_references(schema: Any) -> ReferencePlan | None:
    """Return the plan of *schema*; None if its references have to be collected each time."""
    try:
        place = _Planner().plan([schema])
    except (_Unplanned, RecursionError):
        return None
    if place is None:
        return lambda _payload: []
    return lambda payload: list(dict.fromkeys(_collect_planned(place, payload)))


class _Planner:
    """The planning of one schema, up to a fixed size."""

    def __init__(self) -> None:
        self._left = _MOST_PLACES

    def plan(self, schemas: list[Any]) -> _Place | None:
        parts: list[dict[str, Any]] = []
        waiting = list(schemas)
        while waiting:
            part = waiting.pop()
            if isinstance(part, dict):
                self._left -= 1
                if self._left < 0 or not _UNPLANNED.isdisjoint(part):
                    raise _Unplanned
                parts.append(part)
                waiting += _alternatives(part)
        names = {name for part in parts for name in _mapping(part.get("properties"))}
        properties = {
            name: self.plan([each for part in parts for each in _schemas_of_property(part, name)])
            for name in sorted(names)
        }
        additional = self.plan_if_any([part.get("additionalProperties") for part in parts])
        items = self.plan_if_any([part.get("items") for part in parts])
        is_reference = any(part.get("format") == "cas_ref" for part in parts)
        if not (is_reference or additional or items or any(properties.values())):
            return None
        return _Place(is_reference, properties, additional, items)

    def plan_if_any(self, schemas: list[Any]) -> _Place | None:
        """Plan as ``plan``, if there is any schema at all."""
        if any(isinstance(schema, list) for schema in schemas):
            raise _Unplanned
        return self.plan(schemas) if any(isinstance(each, dict) for each in schemas) else None


def _collect_planned(place: _Place, value: Any) -> Iterator[NodeHash]:
    if place.is_reference:
        target = find_reference(value)
        if target is not None:
            yield target
    if isinstance(value, dict):
        for name, item in value.items():
            inner = place.properties.get(name, place.additional)
            if inner is not None:
                yield from _collect_planned(inner, item)
    elif isinstance(value, list) and place.items is not None:
        for item in value:
            yield from _collect_planned(place.items, item)


# Closures: every node that a node reaches by types and references.


def walk_closure(roots: list[NodeHash], get_node: Callable[[NodeHash], Node]) -> Iterator[Node]:
    """Yield every node that the *roots* reach by types and references, breadth first, each once."""
    load = cache(get_node)
    found = list(dict.fromkeys(roots))
    known = set(found)
    # The list grows meanwhile.
    for name in found:
        node = load(name)
        yield node
        new = [each for each in direct_references(node, load) if each not in known]
        known.update(new)
        found += new


def direct_references(
    node: Node,
    get_node: Callable[[NodeHash], Node],
    collect: Callable[[Any, Any], list[NodeHash]] = collect_references,
) -> list[NodeHash]:
    """List what *node* refers to: its type, then the references in its payload."""
    schema = node if node.is_self_typed else get_node(node.type)
    targets = [] if node.is_self_typed else [node.type]
    return list(dict.fromkeys([*targets, *collect(schema.payload, node.payload)]))


_REF: dict[str, Any] = {
    "type": "object",
    "format": "cas_ref",
    "properties": {"$ref": {"type": "string", "pattern": PATTERN}},
    "required": ["$ref"],
    "additionalProperties": False,
}
_REFS_BY_NAME: dict[str, Any] = {"type": "object", "additionalProperties": _REF}
_OBJECT: dict[str, Any] = {"type": "object"}
_NATURAL: dict[str, Any] = {"type": "integer", "minimum": 0}


def _record(title: str, properties: dict[str, Any], optional: str = "") -> dict[str, Any]:
    """Build the schema of an object whose fields are all required except the *optional* ones."""
    return {
        "title": title,
        "type": "object",
        "properties": properties,
        "required": [name for name in properties if name not in optional.split()],
        "additionalProperties": False,
    }


_AGENT_FIELDS: dict[str, Any] = {
    "command": {"type": "string", "minLength": 1},
    "protocol": {"enum": ["positional", "flags"]},
    "timeout": {"type": "number", "exclusiveMinimum": 0},
    "retries": _NATURAL,
    "backoff": {"type": "number", "minimum": 0},
    "env": {"type": "object", "additionalProperties": _TEXT},
}
_AGENT_CONFIG = _record("AgentConfig", _AGENT_FIELDS, "protocol timeout retries backoff env")
_AGENT_CHOICE: dict[str, Any] = {
    "anyOf": [{"type": "string", "minLength": 1}, {**_AGENT_CONFIG, "title": "agent"}]
}

_TEXTS: dict[str, Any] = {
    "type": "array",
    "items": {"type": "string", "minLength": 1},
    "minItems": 1,
}
_ROLE = {
    **_record(
        "Role",
        {
            "name": _TEXT,
            "description": _TEXT,
            "systemPrompt": _TEXT,
            "extractPrompt": _TEXT,
            "outputSchema": _REF,
            "workflow": _REF,
            "checks": _TEXTS,
            "outputFile": {"type": "string", "minLength": 1},
            "inputFiles": _TEXTS,
        },
        "systemPrompt extractPrompt outputSchema workflow checks outputFile inputFiles",
    ),
    "anyOf": [{"required": ["systemPrompt", "outputSchema"]}, {"required": ["workflow"]}],
}

_TRANSITION = _record("transition", {"to": _TEXT, "condition": {"type": ["string", "null"]}})
_MODERATOR = _record(
    "Moderator",
    {
        "graph": {
            "type": "array",
            "items": _record(
                "from", {"from": _TEXT, "transitions": {"type": "array", "items": _TRANSITION}}
            ),
        }
    },
)

_WORKFLOW = {
    **_record(
        "Workflow",
        {
            "name": _TEXT,
            "description": _TEXT,
            "roles": _REFS_BY_NAME,
            "moderator": _REF,
            "flow": _REF,
            "defaultAgent": _AGENT_CHOICE,
            "agentOverrides": {"type": "object", "additionalProperties": _AGENT_CHOICE},
            "initialState": _OBJECT,
            "config": _OBJECT,
        },
        "moderator flow defaultAgent agentOverrides initialState config",
    ),
    "anyOf": [{"required": ["moderator"]}, {"required": ["flow"]}],
}

_LIMITS: dict[str, Any] = {
    name: {"type": "number", "minimum": 0} if limit.unit == "usd" else _NATURAL
    for name, limit in LIMITS.items()
}

_START = _record(
    "StartNode",
    {
        "workflow": _REF,
        "prompt": _TEXT,
        "agentBinding": _REFS_BY_NAME,
        "initialState": _OBJECT,
        **_LIMITS,
        "parent": _REF,
        "depth": _NATURAL,
        "entry": _TEXT,
    },
    f"initialState {' '.join(_LIMITS)} parent depth entry",
)

_STEP = _record(
    "StepNode",
    {
        "role": _TEXT,
        "meta": {},
        "content": _REF,
        "agent": _REF,
        "prev": _REF,
        "raw": _REF,
        "stderr": _REF,
        "execContext": _REF,
        "prompt": _REF,
        "rung": _TEXT,
        "session": _TEXT,
        "trace": _REF,
        "state": _OBJECT,
        "usage": _OBJECT,
        "startedAt": _NATURAL,
        "durationMs": _NATURAL,
        "branches": {"type": "array", "items": _REF},
    },
    "raw stderr execContext prompt rung session trace state usage startedAt durationMs branches",
)

_AGENT_EXEC_CONTEXT = _record(
    "AgentExecContext", {"env": {"type": "object", "additionalProperties": _TEXT}}
)

_ATTEMPT = _record(
    "Attempt",
    {
        "role": _TEXT,
        "agent": _REF,
        "attempt": {"type": "integer", "minimum": 1},
        "error": _record("error", {"kind": _TEXT, "message": _TEXT}),
        "exitCode": {"type": "integer"},
        "content": _REF,
        "raw": _REF,
        "stderr": _REF,
        "prompt": _REF,
        "trace": _REF,
        "usage": _OBJECT,
        "resetAt": _NATURAL,
        "startedAt": _NATURAL,
        "durationMs": _NATURAL,
    },
    "exitCode content raw stderr prompt trace usage resetAt startedAt durationMs",
)

_TRACE = _record(
    "Trace",
    {
        "events": {"type": "array", "items": _OBJECT},
        "badLines": _NATURAL,
        "leftOut": _NATURAL,
    },
    "badLines leftOut",
)

# The person is the commit's committer; the reason is stored here as it was typed.
_SIGNAL = _record(
    "Signal",
    {
        "action": {"enum": ["pause", "resume", "retry", "patch", "amend", "append", "poke"]},
        "reason": _TEXT,
        "patch": _OBJECT,
        "workflow": _REF,
        "agentBinding": _REFS_BY_NAME,
        "limits": {
            "type": "object",
            "properties": {
                name: {"anyOf": [limit, {"type": "null"}]} for name, limit in _LIMITS.items()
            },
            "additionalProperties": False,
        },
    },
    "reason patch workflow agentBinding limits",
)

_POLICY: dict[str, Any] = {"enum": ["error", "first", "last", "collect", "append"]}

_TEMPLATE_OR_MS: dict[str, Any] = {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _TEXT]}
_INPUT: dict[str, Any] = {"type": ["string", "object"]}
_PATTERNS: dict[str, Any] = {"type": "array", "items": _TEXT}
_VERIFIED_BY = _record(
    "verifiedBy",
    {
        "agentId": _TEXT,
        "when": _TEXT,
        "input": _INPUT,
        "output": _TEXT,
        "timeout": _TEMPLATE_OR_MS,
        "inputFiles": _PATTERNS,
    },
    "input output timeout inputFiles",
)
# A flat table, since the check of a schema that refers to itself always needs a process of its own.
_FLOW_NODE = _record(
    "place",
    {
        "type": {
            "enum": ["agent", "sequential", "parallel", "loop", "conditional", "map", "workflow"]
        },
        "id": _TEXT,
        "name": _TEXT,
        "description": _TEXT,
        "agentId": _TEXT,
        "input": _INPUT,
        "inputFiles": _PATTERNS,
        "output": _TEXT,
        "condition": _TEXT,
        "maxIterations": {"anyOf": [{"type": "integer", "minimum": 1}, _TEXT]},
        "onExhausted": {"enum": ["stop", "continue"]},
        "over": _TEXT,
        "as": _TEXT,
        "use": _TEXT,
        "workflow": _REF,
        "join": {"enum": ["all", "any"]},
        "merge": {"anyOf": [_POLICY, {"type": "object", "additionalProperties": _POLICY}]},
        "tolerate": _NATURAL,
        "isolation": {"enum": ["worktree"]},
        "onError": {"enum": ["stop", "continue", "retry"]},
        "retries": {"anyOf": [_NATURAL, _TEXT]},
        "timeout": _TEMPLATE_OR_MS,
        "verifiedBy": _VERIFIED_BY,
    },
    "id name description agentId input inputFiles output condition maxIterations onExhausted over "
    "as use workflow join merge tolerate isolation onError retries timeout verifiedBy",
)
_FLOW = _record(
    "Flow",
    {
        "language": {"enum": ["javascript", "jsonata"]},
        "nodes": {"type": "object", "additionalProperties": _FLOW_NODE},
    },
    "language",
)

META_NODE: Node = build_node(None, META_SCHEMA, timestamp=0)


_SCHEMA_PAYLOADS = (
    {"title": "Text", "type": "string"},
    {"title": "Bytes", "type": "string", "contentEncoding": "base64"},
    *(_ROLE, _MODERATOR, _WORKFLOW, _AGENT_CONFIG, _START, _STEP),
    *(_ATTEMPT, _TRACE, _SIGNAL, _AGENT_EXEC_CONTEXT, _FLOW),
)
_SCHEMA_NODES = (build_node(META_NODE.hash, each, timestamp=0) for each in _SCHEMA_PAYLOADS)
BUILTIN_NODES: tuple[Node, ...] = (META_NODE, *_SCHEMA_NODES)
"""The meta-schema first, then the schema nodes; every thread begins with all of them."""

_NAMES = [node.hash for node in BUILTIN_NODES]
META, TEXT, BYTES, ROLE, MODERATOR, WORKFLOW, AGENT_CONFIG = _NAMES[:7]
START, STEP, ATTEMPT, TRACE, SIGNAL, AGENT_EXEC_CONTEXT, FLOW = _NAMES[7:]

BUILTIN: dict[NodeHash, Node] = {node.hash: node for node in BUILTIN_NODES}

# Each thread has all the built-in schemas from its start on; this one comes with its Flows.
_RESULT_FLOW_NODE = build_node(META, {**_FLOW, "title": "Flow with results"}, timestamp=0)
RESULT_FLOW = _RESULT_FLOW_NODE.hash
"""A Flow whose branches result in work where they end with a verdict or a join."""

FLOWS = frozenset({FLOW, RESULT_FLOW})
TYPES: dict[NodeHash, Node] = {**BUILTIN, RESULT_FLOW: _RESULT_FLOW_NODE}
"""The types of the nodes that uwf writes."""
