"""Workflow files: from a YAML document to a definition, or to all of its problems."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from uwf_git.errors import Problem, Refused
from uwf_git.model.builtin import TYPES, reference
from uwf_git.model.definition.definition import (
    AgentSpec,
    Definition,
    DocumentPath,
    Findings,
    FlowDefinition,
    RoleDefinition,
    Surroundings,
    shown,
    yaml_kind,
)
from uwf_git.model.definition.graph import (
    LANGUAGES,
    CheckCondition,
    FlowFile,
    GraphReading,
    check_routes,
    read_added_nodes,
    read_flow,
    read_graph,
    read_language,
    warn_of_conditions,
)
from uwf_git.model.definition.roles import (
    CheckSchema,
    RolesFile,
    read_agent,
    read_overrides,
    read_roles,
)
from uwf_git.model.flow import HOLDING, Flow, read_table
from uwf_git.model.limits import LIMITS, find_limit_problem
from uwf_git.model.node import Node, build_node
from uwf_git.model.workflow import Graph, Transition, build_moves, build_roles, write_agents
from uwf_git.model.workflow_name import check_workflow_name
from uwf_git.model.yaml_reader import YamlDocument, parse_yaml

# The settings of a workflow file, under ``config`` (seed 004).
#
# maxSteps, maxTokens and maxCost are additions of uwf. A thread's own limits take precedence.

_SWITCHES = ("eventEmit", "stateSnapshot")

SETTINGS = (*LIMITS, *_SWITCHES)
"""The keys of ``config``."""


def read_config(findings: Findings, value: Any) -> dict[str, Any] | None:
    """Read ``config``: limits of each thread, and what its events contain; None if empty."""
    path: DocumentPath = ("config",)
    if value is None:
        return None
    fields = findings.read_fields(path, value, SETTINGS) or {}
    for name, setting in fields.items():
        if name not in _SWITCHES:
            problem = find_limit_problem(name, setting)
        else:
            is_switch = isinstance(setting, bool)
            problem = None if is_switch else f"must be true or false, not {yaml_kind(setting)}"
        if problem:
            findings.add((*path, name), problem)
    return fields or None


_COMMON = (
    "name",
    "description",
    "roles",
    "defaultAgent",
    "agentOverrides",
    "initialState",
    "config",
    "version",
)
GRAPH_KEYS = (*_COMMON, "moderator")
FLOW_KEYS = (*_COMMON, "root", "language")

_VERSION = "1.0"


def read_unchecked(source: bytes) -> Definition:
    """Read a workflow file without a look at its conditions and schemas."""
    return read_definition(
        parse_yaml(source),
        check_condition=lambda _condition: None,
        check_schema=lambda _schema: [],
    )


def read_definition(
    document: YamlDocument,
    *,
    check_condition: CheckCondition,
    check_schema: CheckSchema,
    surroundings: Surroundings | None = None,
) -> Definition:
    """Read a workflow file, in any spelling that the seeds use.

    *check_condition* returns what is wrong with a JSONata condition, *check_schema* with a JSON
    Schema; they are arguments since those libraries are slow to import. Without *surroundings*
    no template and no text of a flow is checked, and it can use no other workflow.
    """
    findings, outside = Findings(document), surroundings or Surroundings()
    fields, root = _read_top(findings, document.value)
    is_flow, named = root is not None, fields.get("roles")
    state = _read_state(findings, fields.get("initialState"), is_flow=is_flow)
    name = _read_name(findings, fields, outside.name if root == () else None)
    language = read_language(findings, fields) if is_flow else None
    find_used = None if is_flow else outside.find_used
    around = RolesFile(name, find_used, outside.check_text, language or LANGUAGES[0])
    is_without = is_flow and not named
    roles = {} if is_without else read_roles(findings, named, check_schema, around)
    role_names = list(named) if isinstance(named, dict) else []
    graph: Graph = {}
    flow: FlowDefinition | None = None
    if root is not None:
        file = FlowFile(name, language, roles, outside, state=state)
        # Without `root`, all keys but those of the workflow belong to the container.
        bare = {key: item for key, item in fields.items() if key not in (*_COMMON, "language")}
        container = fields.get("root") if root else bare
        flow, added = read_flow(findings, root, container, file)
        roles |= {agent: role for agent, role in added.items() if agent not in role_names}
        role_names += [agent for agent in added if agent not in role_names]
    else:
        moves = fields.get("moderator")
        reading = read_graph(findings, moves, roles=role_names, check_condition=check_condition)
        if role_names and reading.is_understood:
            check_routes(findings, reading, roles=role_names)
        warn_of_conditions(findings, reading, roles, outside.list_reads)
        graph = {name: tuple(ways) for name, ways in reading.entries.items()}
    default = fields.get("defaultAgent")
    definition = Definition(
        name=name,
        description=findings.read_optional_text((), fields, "description") or "",
        roles=roles,
        graph=graph,
        default_agent=None if default is None else read_agent(findings, ("defaultAgent",), default),
        agent_overrides=read_overrides(findings, fields.get("agentOverrides"), roles=role_names),
        initial_state=state,
        config=read_config(findings, fields.get("config")),
        flow=flow,
        warnings=findings.warnings,
    )
    findings.raise_if_any()
    return definition


def _read_top(findings: Findings, value: Any) -> tuple[dict[str, Any], DocumentPath | None]:
    """Return the fields of the file, and the path of the root of a flow; None in a graph."""
    if not isinstance(value, dict):
        findings.add(
            (),
            "a workflow is a YAML mapping with a name, and a root or a moderator, not "
            f"{yaml_kind(value)}",
        )
        findings.raise_if_any()
    if "root" not in value and "type" in value and "moderator" not in value:
        # A bare container.
        fields = {key: item for key, item in value.items() if item is not None}
        root: DocumentPath | None = ()
    elif "root" in value:
        if "moderator" in value:
            findings.add(
                ("moderator",), "a workflow has a root (containers) or a moderator (a graph)"
            )
        known = {key: item for key, item in value.items() if key != "moderator"}
        fields, root = findings.read_fields((), known, FLOW_KEYS) or {}, ("root",)
    else:
        fields, root = findings.read_fields((), value, GRAPH_KEYS) or {}, None
    _check_version(findings, fields.get("version"))
    return fields, root


def _check_version(findings: Findings, value: Any) -> None:
    # YAML reads 1.0 without quotes as a number.
    if value is None or value == _VERSION or (isinstance(value, float) and value == 1):
        return
    told = shown(value) if isinstance(value, str) else yaml_kind(value)
    findings.add(("version",), f"must be '{_VERSION}', not {told}")


def _read_name(findings: Findings, fields: dict[str, Any], default: str | None) -> str:
    if "name" not in fields and default is None:
        findings.add((), "'name' is missing")
        return ""
    path: DocumentPath = ("name",) if "name" in fields else ()
    name = findings.read_text(path, fields.get("name", default))
    if name is None:
        return ""
    problem = check_workflow_name(name)
    if problem:
        findings.add(path, f"{shown(name)} cannot be a workflow's name: {problem}")
    return name


def _read_state(findings: Findings, value: Any, *, is_flow: bool) -> dict[str, Any] | None:
    if isinstance(value, dict) and is_flow:
        # The passes are counted by uwf (seed 004 begins with 0 of them).
        return {key: item for key, item in value.items() if key != "iteration"}
    if value is None or isinstance(value, dict):
        return value
    findings.add(("initialState",), f"must be a mapping, not {yaml_kind(value)}")
    return None


# What is appended to the workflow of a thread: roles and transitions, or nodes of a flow.

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
    file: RolesFile,
) -> Addition:
    """Read a file that adds roles and transitions to a workflow.

    *to* has the names of the workflow's roles, and its graph; *file* the file's name, and the
    workflows that may play roles. The checks are as for ``read_definition``.
    """
    findings = Findings(document)
    names, graph = to
    keys = ("roles", "moderator", "graph", "agentOverrides")
    fields = read_appended_top(findings, document.value, keys)
    named = fields.get("roles")
    roles = {} if named is None else read_roles(findings, named, check_schema, file)
    added = list(named) if isinstance(named, dict) else []
    known = [*names, *(name for name in added if name not in names)]
    appended = _read_appended_graph(findings, fields, known, check_condition)
    reading = replace(appended, entries=_merge(graph, appended))
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
    roles, nodes = build_roles(addition.roles, timestamp=timestamp)
    payload: dict[str, Any] = {**workflow.payload, "roles": workflow.payload["roles"] | roles}
    moves = build_moves(addition.flow or addition.graph, timestamp=timestamp)
    payload["moderator" if addition.flow is None else "flow"] = reference(moves.hash)
    nodes += () if addition.flow is None else addition.flow.used
    if addition.agent_overrides:
        own = write_agents(addition.agent_overrides)
        payload["agentOverrides"] = {**payload.get("agentOverrides", {}), **own}
    added = {node.hash: node for node in (*nodes, TYPES[moves.type], moves)}
    return build_node(workflow.type, payload, timestamp=timestamp), list(added.values())


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


def _read_appended_graph(
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


def no_such_container(named: str, problem: str, known: Sequence[str]) -> Refused:
    ids = ", ".join(known)
    return Refused(
        f"{named[:60]!r} {problem}",
        code="no-such-container",
        hint=f"its containers are {ids}" if ids else "leave --to out: no container has a name",
        named=named[:60],
        containers=list(known),
    )


class Target(NamedTuple):
    name: str
    roles: Mapping[str, str | None]
    """The output file of each role of the workflow."""

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
        fields = read_appended_top(findings, value, ("nodes", "roles", "agentOverrides"))
        value, path = fields.get("nodes"), ("nodes",)
    named = fields.get("roles")
    around = RolesFile(check_text=surroundings.check_text, language=to.flow.language)
    roles = {} if named is None else read_roles(findings, named, check_schema, around)
    known = {**to.roles, **dict.fromkeys(named if isinstance(named, dict) else ())}
    blank = {
        name: RoleDefinition(name, "", "", None, output_schema=True, output_file=output)
        for name, output in known.items()
    }
    language = None if to.flow.language == LANGUAGES[0] else to.flow.language
    file = FlowFile(to.name, language, blank | roles, surroundings, bool(roles))
    flow, added = read_added_nodes(findings, path, value, file=file, to=(to.flow, to.container))
    overrides = read_overrides(findings, fields.get("agentOverrides"), roles=[*known, *added])
    findings.raise_if_any()
    depth = to.container.count("/") + 1 if to.container else 0
    labels = [
        node.label
        for place, node in read_table(flow.nodes).items()
        if place not in to.flow.nodes and place.count("/") == depth
    ]
    every = {**roles, **added}
    return Addition(every, tuple(labels), overrides, flow=flow, warnings=findings.warnings)
