"""Built-in schemas: the types of the nodes that uwf writes (seed 000, section 2).

A built-in node is the same blob everywhere (its timestamp is 0). Changing a schema here changes its
name, and old threads keep the old name: add a version, never edit a schema that shipped.
"""

from typing import Any

from uwf_git.model.limits import LIMITS
from uwf_git.model.meta_schema import META_SCHEMA
from uwf_git.model.names import PATTERN, NodeHash
from uwf_git.model.node import Node, build_node, build_self_typed_node

_TEXT: dict[str, Any] = {"type": "string"}
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

_TEMPLATE_OR_NATURAL: dict[str, Any] = {"anyOf": [_NATURAL, _TEXT]}
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
        "retries": _TEMPLATE_OR_NATURAL,
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

META_NODE: Node = build_self_typed_node(META_SCHEMA, timestamp=0)
META: NodeHash = META_NODE.hash


def _schema_node(schema: dict[str, Any]) -> Node:
    return build_node(META, schema, timestamp=0)


_TEXT_NODE = _schema_node({"title": "Text", "type": "string"})
_BYTES_NODE = _schema_node({"title": "Bytes", "type": "string", "contentEncoding": "base64"})
_ROLE_NODE = _schema_node(_ROLE)
_MODERATOR_NODE = _schema_node(_MODERATOR)
_WORKFLOW_NODE = _schema_node(_WORKFLOW)
_AGENT_CONFIG_NODE = _schema_node(_AGENT_CONFIG)
_START_NODE = _schema_node(_START)
_STEP_NODE = _schema_node(_STEP)
_ATTEMPT_NODE = _schema_node(_ATTEMPT)
_TRACE_NODE = _schema_node(_TRACE)
_SIGNAL_NODE = _schema_node(_SIGNAL)
_AGENT_EXEC_CONTEXT_NODE = _schema_node(_AGENT_EXEC_CONTEXT)
_FLOW_SCHEMA_NODE = _schema_node(_FLOW)

TEXT: NodeHash = _TEXT_NODE.hash
BYTES: NodeHash = _BYTES_NODE.hash
ROLE: NodeHash = _ROLE_NODE.hash
MODERATOR: NodeHash = _MODERATOR_NODE.hash
WORKFLOW: NodeHash = _WORKFLOW_NODE.hash
AGENT_CONFIG: NodeHash = _AGENT_CONFIG_NODE.hash
START: NodeHash = _START_NODE.hash
STEP: NodeHash = _STEP_NODE.hash
ATTEMPT: NodeHash = _ATTEMPT_NODE.hash
TRACE: NodeHash = _TRACE_NODE.hash
SIGNAL: NodeHash = _SIGNAL_NODE.hash
AGENT_EXEC_CONTEXT: NodeHash = _AGENT_EXEC_CONTEXT_NODE.hash
FLOW: NodeHash = _FLOW_SCHEMA_NODE.hash

BUILTIN_NODES: tuple[Node, ...] = (
    META_NODE,
    _TEXT_NODE,
    _BYTES_NODE,
    _ROLE_NODE,
    _MODERATOR_NODE,
    _WORKFLOW_NODE,
    _AGENT_CONFIG_NODE,
    _START_NODE,
    _STEP_NODE,
    _ATTEMPT_NODE,
    _TRACE_NODE,
    _SIGNAL_NODE,
    _AGENT_EXEC_CONTEXT_NODE,
    _FLOW_SCHEMA_NODE,
)
"""The meta-schema first, then the schema nodes; every thread begins with all of them."""

BUILTIN: dict[NodeHash, Node] = {node.hash: node for node in BUILTIN_NODES}
