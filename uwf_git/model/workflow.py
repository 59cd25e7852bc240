"""Workflows as nodes: build them from a definition, and read them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import (
    BUILTIN_NODES,
    FLOW,
    FLOWS,
    META,
    MODERATOR,
    RESULT_FLOW,
    ROLE,
    TYPES,
    WORKFLOW,
    find_reference,
    reference,
)
from uwf_git.model.flow import Flow, parse_flow, read_table
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node, build_node

if TYPE_CHECKING:
    from uwf_git.model.definition.definition import (
        AgentSpec,
        Definition,
        FlowDefinition,
        RoleDefinition,
    )

# JSON values that nobody can change, so that one copy serves all readers.
#
# They are dicts and lists for all that reads: ``==``, ``json``, ``isinstance``. A copy, by
# ``copy.deepcopy`` as well, can be changed.


def freeze(value: Any) -> Any:
    """Return a copy of a JSON value that cannot be changed; at most as deep as a node's."""
    # One frame a level, as for canonical values.
    if isinstance(value, dict):
        fields: dict[str, Any] = {}
        for key, item in value.items():
            fields[key] = freeze(item)
        return FrozenDict(fields)
    if isinstance(value, list):
        items: list[Any] = []
        for item in value:
            items.append(freeze(item))  # noqa: PERF401 (see above)
        return FrozenList(items)
    return value


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _refuse(self: object, *_given: object, **_named: object) -> NoReturn:
    raise TypeError(f"this {type(self).__bases__[0].__name__} is shared and cannot be changed")


class FrozenDict(dict[str, Any]):
    """A dict that raises TypeError when it is changed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class FrozenList(list[Any]):
    """A list that raises TypeError when it is changed."""

    __slots__ = ()

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


# The workflow graph: its transitions, and the two names that are not roles.

START = "$START"
"""The position before the first step."""

END = "$END"
"""The position after the last step."""


class Transition(NamedTuple):
    """One arrow of the graph, from a position to the next role."""

    to: str
    """The next role, or ``END``."""

    condition: str | None
    """JSONata text; None is always true."""


Graph: TypeAlias = Mapping[str, tuple[Transition, ...]]
"""The transitions of each role and of ``START``, in the order in which they are tried."""


# Workflows as nodes: build them from a definition, and read them (seed 000, section 2).


class NotAWorkflow(StoreDamaged):
    """A node does not hold the expected part of a workflow."""

    code = "not-a-workflow"

    def __init__(self, node: Node, part: str) -> None:
        super().__init__(
            f"node {node.hash} is not a {part} that this uwf can read",
            hint=f"look at it with `json-cas get {node.hash}`",
            node=node.hash,
        )


class Workflow(NamedTuple):
    hash: NodeHash
    name: str
    description: str
    roles: Mapping[str, NodeHash]
    moderator: NodeHash | None
    """The graph; None if the workflow is a flow."""

    flow: NodeHash | None
    """The containers; None if the workflow is a graph."""

    default_agent: dict[str, Any] | None

    agent_overrides: Mapping[str, dict[str, Any]]
    """AgentConfig payloads by role."""

    initial_state: dict[str, Any] | None
    config: Mapping[str, Any]
    """The limits that a thread begins with, and which events it sends."""

    def get_moderator(self) -> NodeHash:
        if self.moderator is None:
            raise ValueError("a flow has no graph")  # a bug of the caller
        return self.moderator


class Role(NamedTuple):
    name: str
    description: str
    system_prompt: str
    extract_prompt: str | None
    output_schema: NodeHash
    workflow: NodeHash | None = None
    """The Workflow that plays it; None: an agent does."""

    checks: tuple[str, ...] = ()
    """The commands that have to succeed before an answer is recorded."""

    output_file: str | None = None
    """A template for the path at which its agent may leave its meta."""

    input_files: tuple[str, ...] = ()
    """Templates for paths, or patterns, of the files that its agent is given."""


def describe_check(command: str) -> dict[str, Any]:
    """Return what is trusted where a check may run: as an agent with this command."""
    return {"command": command}


def build_workflow(definition: "Definition", *, timestamp: int) -> tuple[Node, list[Node]]:
    roles, nodes = build_roles(definition.roles, timestamp=timestamp)
    flow, default = definition.flow, definition.default_agent
    moves = build_moves(flow or definition.graph, timestamp=timestamp)
    used = [TYPES[moves.type], *(() if flow is None else flow.used)]
    closure = {node.hash: node for node in (*BUILTIN_NODES, *nodes, moves, *used)}
    payload = {
        "name": definition.name,
        "description": definition.description,
        "roles": roles,
        "moderator" if flow is None else "flow": reference(moves.hash),
        "defaultAgent": None if default is None else write_agent(default),
        "agentOverrides": write_agents(definition.agent_overrides) or None,
        "initialState": definition.initial_state,
        "config": definition.config,
    }
    node = build_node(WORKFLOW, without_none(payload), timestamp=timestamp)
    return node, list(closure.values())


def build_roles(
    roles: "Mapping[str, RoleDefinition]", *, timestamp: int
) -> tuple[dict[str, Any], list[Node]]:
    """Return the references to the nodes of *roles*, and all new nodes."""
    references: dict[str, Any] = {}
    nodes: list[Node] = []
    for name, role in roles.items():
        schema = build_node(META, role.output_schema, timestamp=timestamp)
        payload = {
            "name": role.name,
            "description": role.description,
            "systemPrompt": role.system_prompt,
            "extractPrompt": role.extract_prompt,
            "outputSchema": reference(schema.hash),
            "workflow": None if role.workflow is None else reference(role.workflow),
            "checks": list(role.checks) or None,
            "outputFile": role.output_file or None,
            "inputFiles": list(role.input_files) or None,
        }
        node = build_node(ROLE, without_none(payload), timestamp=timestamp)
        nodes += [schema, node, *role.used]
        references[name] = reference(node.hash)
    return references, nodes


def write_agents(agents: "Mapping[str, AgentSpec]") -> dict[str, Any]:
    return {role: write_agent(agent) for role, agent in agents.items()}


def build_moves(moves: "Graph | FlowDefinition", *, timestamp: int) -> Node:
    """Return the Moderator node of a graph, or the Flow node of a flow."""
    if not isinstance(moves, Mapping):
        payload: dict[str, Any] = {} if moves.language is None else {"language": moves.language}
        payload["nodes"] = {place: dict(fields) for place, fields in moves.nodes.items()}
        is_played = any(each.type == ROLE and "workflow" in each.payload for each in moves.used)
        has_results = is_played or Flow(read_table(moves.nodes)).needs_results
        return build_node(RESULT_FLOW if has_results else FLOW, payload, timestamp=timestamp)
    rows = [
        {
            "from": position,
            "transitions": [{"to": way.to, "condition": way.condition} for way in ways],
        }
        for position, ways in moves.items()
    ]
    return build_node(MODERATOR, {"graph": rows}, timestamp=timestamp)


def write_agent(agent: "AgentSpec") -> str | dict[str, Any]:
    """Write an agent as seed 000 does: only the command, unless it has other settings."""
    payload = agent.as_payload()
    return agent.command if payload.keys() == {"command"} else payload


def parse_workflow(node: Node) -> Workflow:
    payload = node.payload
    if node.type != WORKFLOW or not isinstance(payload, dict):
        raise NotAWorkflow(node, "workflow")
    moderator = find_reference(payload.get("moderator"))
    flow = find_reference(payload.get("flow"))
    if (moderator is None) == (flow is None):
        raise NotAWorkflow(node, "workflow with a moderator or a flow")
    try:
        default = payload.get("defaultAgent")
        return Workflow(
            hash=node.hash,
            name=str(payload["name"]),
            description=str(payload["description"]),
            roles=FrozenDict(
                {role: NodeHash(ref["$ref"]) for role, ref in payload["roles"].items()}
            ),
            moderator=moderator,
            flow=flow,
            default_agent=None if default is None else _agent_payload(default),
            agent_overrides=FrozenDict(
                {
                    role: _agent_payload(agent)
                    for role, agent in payload.get("agentOverrides", {}).items()
                }
            ),
            initial_state=payload.get("initialState"),
            config=payload.get("config", {}),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise NotAWorkflow(node, "workflow") from error


def parse_role(node: Node) -> Role:
    payload = node.payload
    schema = find_reference(payload.get("outputSchema")) if isinstance(payload, dict) else None
    if node.type != ROLE or schema is None:
        raise NotAWorkflow(node, "role")
    return Role(
        name=str(payload.get("name")),
        description=str(payload.get("description", "")),
        system_prompt=str(payload.get("systemPrompt", "")),
        extract_prompt=payload.get("extractPrompt"),
        output_schema=schema,
        workflow=find_reference(payload.get("workflow")),
        checks=tuple(payload.get("checks", ())),
        output_file=payload.get("outputFile"),
        input_files=tuple(payload.get("inputFiles", ())),
    )


def parse_flow_node(node: Node) -> Flow:
    if node.type not in FLOWS:
        raise NotAWorkflow(node, "flow")
    try:
        flow = parse_flow(node.payload)
    except ValueError as error:
        raise NotAWorkflow(node, "flow") from error
    flow.has_results = node.type == RESULT_FLOW
    return flow


def parse_graph(node: Node) -> Graph:
    if node.type != MODERATOR:
        raise NotAWorkflow(node, "moderator")
    try:
        return FrozenDict(
            {
                str(row["from"]): tuple(
                    Transition(to=str(way["to"]), condition=way["condition"])
                    for way in row["transitions"]
                )
                for row in node.payload["graph"]
            }
        )
    except (KeyError, TypeError) as error:
        raise NotAWorkflow(node, "moderator") from error


def _agent_payload(choice: str | dict[str, Any]) -> dict[str, Any]:
    return FrozenDict({"command": choice}) if isinstance(choice, str) else choice
