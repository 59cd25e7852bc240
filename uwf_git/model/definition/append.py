"""What is appended to the workflow of a thread: roles and transitions, or nodes of a flow."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from uwf_git.errors import Refused
from uwf_git.model.definition.agents import read_overrides
from uwf_git.model.definition.definition import (
    AgentSpec,
    FlowDefinition,
    RoleDefinition,
    Surroundings,
)
from uwf_git.model.definition.findings import DocumentPath, Findings, InvalidWorkflow, yaml_kind
from uwf_git.model.definition.flow import FlowFile, read_added_nodes
from uwf_git.model.definition.graph import CheckCondition, GraphReading, check_routes, read_graph
from uwf_git.model.definition.roles import CheckSchema, RolesFile, read_roles
from uwf_git.model.flow import HOLDING, Flow
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node, build_node
from uwf_git.model.problem import Problem
from uwf_git.model.references import reference
from uwf_git.model.workflow import (
    Graph,
    Transition,
    build_flow,
    build_moderator,
    build_role,
    write_agent,
)
from uwf_git.model.yaml.reader import YamlDocument

# Files that are appended to the workflow of a thread (seed 004, appendNodes).
#
# A role of the same name is replaced whole; appended transitions are tried before the others of
# their position, and one without a condition hides those. The result must be as sound as a
# workflow file.

__all__ = ["Addition", "InvalidWorkflow", "append_addition", "read_addition"]

_KEYS = ("roles", "moderator", "graph", "agentOverrides")
# Keys of a workflow file that an appended part cannot change.
_WHOLE = ("name", "description", "defaultAgent", "initialState", "config")


class Addition(NamedTuple):
    """What a file adds, and the resulting graph or table."""

    roles: Mapping[str, RoleDefinition]
    """New roles, and replacements of existing ones."""

    added: tuple[str, ...]
    """The positions from which transitions were appended; or the labels of the new nodes."""

    agent_overrides: Mapping[str, AgentSpec]
    graph: Graph = MappingProxyType({})
    """The whole graph: the appended transitions before the others."""

    flow: FlowDefinition | None = None
    """All nodes of the flow; None if the workflow is a graph."""

    warnings: tuple[Problem, ...] = ()


def read_addition(
    document: YamlDocument,
    *,
    to: tuple[tuple[str, ...], Graph],
    check_condition: CheckCondition,
    check_schema: CheckSchema,
    file: RolesFile | None = None,
) -> Addition:
    """Read a file that adds roles and transitions to a workflow.

    *to* has the names of the workflow's roles, and its graph; *file* the file's name, and the
    workflows that may play roles. The checks are as for ``read_definition``.
    """
    findings = Findings(document)
    names, graph = to
    fields = read_appended_top(findings, document.value, _KEYS)
    named = fields.get("roles")
    roles: dict[str, RoleDefinition] = {}
    if named is not None:
        around = file or RolesFile("", Surroundings().find_used)
        roles = read_roles(findings, named, check_schema=check_schema, file=around)
    added = list(named) if isinstance(named, dict) else []
    known = [*names, *(name for name in added if name not in names)]
    appended = _read_graph(findings, fields, known, check_condition)
    reading = GraphReading(
        appended.path, _merge(graph, appended), appended.places, appended.is_understood
    )
    overrides = read_overrides(findings, fields.get("agentOverrides"), roles=known)
    if reading.is_understood and not (added or reading.places or overrides):
        findings.add((), "adds nothing; it needs roles, or a moderator with transitions")
    elif reading.is_understood:
        check_routes(findings, reading, roles=known)
    findings.raise_if_any()
    whole = {source: tuple(ways) for source, ways in reading.entries.items()}
    return Addition(roles, tuple(appended.entries), overrides, whole)


def append_addition(
    workflow: Node, addition: Addition, *, timestamp: int
) -> tuple[Node, list[Node]]:
    """Return the Workflow node of *workflow* and *addition*, and the other new nodes."""
    nodes: dict[NodeHash, Node] = {}
    payload: dict[str, Any] = {**workflow.payload, "roles": dict(workflow.payload["roles"])}
    for name, role in addition.roles.items():
        node, schema = build_role(role, timestamp=timestamp)
        nodes |= {each.hash: each for each in (schema, node, *role.used)}
        payload["roles"][name] = reference(node.hash)
    if addition.flow is None:
        moves, part = build_moderator(addition.graph, timestamp=timestamp), "moderator"
    else:
        moves, part = build_flow(addition.flow, timestamp=timestamp), "flow"
        nodes |= {node.hash: node for node in addition.flow.used}
    nodes[moves.hash] = moves
    payload[part] = reference(moves.hash)
    if addition.agent_overrides:
        payload["agentOverrides"] = {
            **payload.get("agentOverrides", {}),
            **{role: write_agent(agent) for role, agent in addition.agent_overrides.items()},
        }
    return build_node(workflow.type, payload, timestamp=timestamp), list(nodes.values())


def read_appended_top(findings: Findings, value: Any, keys: Sequence[str]) -> dict[str, Any]:
    """Return the fields of the file; if it has no readable ones, raise at once."""
    if not isinstance(value, dict):
        told = " and ".join(key for key in keys if key in {"nodes", "roles", "moderator"})
        findings.add((), f"an appended file is a mapping with {told}, not {yaml_kind(value)}")
        findings.raise_if_any()
    for key in _WHOLE:
        if key in value:
            findings.add((key,), f"{key!r} cannot be appended: it belongs to the whole workflow")
    known = {key: item for key, item in value.items() if key not in _WHOLE}
    return findings.read_fields((), known, keys) or {}


def _read_graph(
    findings: Findings, fields: dict[str, Any], known: list[str], check_condition: CheckCondition
) -> GraphReading:
    if "moderator" in fields and "graph" in fields:
        findings.add(("graph",), "moderator and graph mean the same; keep one of them")
    value, path = fields.get("moderator"), ("moderator",)
    if "graph" in fields and value is None:
        value, path = fields["graph"], ("graph",)
    if value is None:
        return GraphReading(path)
    return read_graph(findings, value, roles=known, check_condition=check_condition, path=path)


def _merge(graph: Graph, appended: GraphReading) -> dict[str, list[Transition]]:
    """Put the appended transitions before the transitions of *graph* that can still be reached."""
    merged = {source: list(ways) for source, ways in graph.items()}
    for source, ways in appended.entries.items():
        ends = any(way.condition is None for way in ways)
        # A transition that is appended twice is tried once.
        older = [way for way in merged.get(source, []) if way not in ways]
        merged[source] = ways if ends else [*ways, *older]
    return merged


# Nodes that are appended to the flow of a thread (seed 004, appendNodes).
#
# They go after the root, or at the end of the list of one container. A role of the same name is
# replaced whole. All else stays as it is, so that the thread's place stays what it was.

_FLOW_KEYS = ("nodes", "roles", "agentOverrides")


def no_such_container(named: str, problem: str, known: Sequence[str]) -> Refused:
    ids = ", ".join(known)
    return Refused(
        f"{named[:60]!r} {problem}",
        code="no-such-container",
        hint=f"its containers are {ids}" if ids else "without --to it runs after the root",
        named=named[:60],
        containers=list(known),
    )


class Target(NamedTuple):
    name: str
    roles: tuple[str, ...]
    flow: Flow
    container: str = ""
    """The place of the container; "" is the top, after the root."""


def find_target(target: Target, named: str | None) -> Target:
    """Return *target* with the container that *named* means: its id, else its name."""
    if named is None:
        return target
    nodes = target.flow.nodes.values()
    found = [node for node in nodes if node.fields.get("id") == named]
    found = found or [node for node in nodes if node.fields.get("name") == named]
    known = [node.label for node in nodes if node.kind in HOLDING and node.label != node.kind]
    if not found:
        raise no_such_container(named, "is no id or name of a container", known)
    if len(found) > 1:
        raise no_such_container(named, f"is the name of {len(found)} containers", known)
    if found[0].kind not in HOLDING:
        raise no_such_container(named, f"is a {found[0].kind}, and holds no nodes", known)
    return target._replace(container=found[0].place)


def read_flow_addition(
    document: YamlDocument, *, to: Target, check_schema: CheckSchema, surroundings: Surroundings
) -> Addition:
    """Read a file that adds nodes to a flow: a list of them, or ``nodes`` and ``roles``."""
    findings = Findings(document)
    value: Any = document.value
    path: DocumentPath = ()
    fields: dict[str, Any] = {}
    if not isinstance(value, list):
        fields = read_appended_top(findings, value, _FLOW_KEYS)
        value, path = fields.get("nodes"), ("nodes",)
    named = fields.get("roles")
    around = RolesFile(check_text=surroundings.check_text, language=to.flow.language)
    roles = {}
    if named is not None:
        roles = read_roles(findings, named, check_schema=check_schema, file=around)
    known = dict.fromkeys([*to.roles, *(named if isinstance(named, dict) else ())])
    blank = {name: RoleDefinition(name, "", "", None, output_schema=True) for name in known}
    file = FlowFile(to.name, to.flow.language, blank | roles, surroundings, bool(roles))
    added = read_added_nodes(findings, path, value, file=file, to=(to.flow, to.container))
    overrides = read_overrides(findings, fields.get("agentOverrides"), roles=[*known, *added.roles])
    findings.raise_if_any()
    depth = to.container.count("/") + 1 if to.container else 0
    labels = [
        str(each.get("id") or each.get("name") or each.get("agentId") or each["type"])
        for place, each in added.nodes.items()
        if place not in to.flow.nodes and place.count("/") == depth
    ]
    language = None if to.flow.language == "javascript" else to.flow.language
    flow = FlowDefinition(added.nodes, language, added.used)
    every = {**roles, **added.roles}
    return Addition(every, tuple(labels), overrides, flow=flow, warnings=findings.warnings)
