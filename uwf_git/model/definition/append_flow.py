"""Nodes that are appended to the flow of a thread (seed 004, appendNodes).

They go after the root, or at the end of the list of one container. A role of the same name is
replaced whole. All else stays as it is, so that the thread's place stays what it was.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from uwf_git.errors import Refused
from uwf_git.model.definition.agents import read_overrides
from uwf_git.model.definition.append import read_appended_top
from uwf_git.model.definition.definition import AgentSpec, FlowDefinition, RoleDefinition
from uwf_git.model.definition.findings import DocumentPath, Findings
from uwf_git.model.definition.flow import FlowFile, read_added_nodes
from uwf_git.model.definition.roles import CheckSchema, RolesFile, read_roles
from uwf_git.model.definition.surroundings import Surroundings
from uwf_git.model.flow import HOLDING, Flow
from uwf_git.model.node import Node, build_node
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.problem import Problem
from uwf_git.model.references import reference
from uwf_git.model.workflow import build_flow, build_role, write_agent
from uwf_git.model.yaml.reader import YamlDocument

_KEYS = ("nodes", "roles", "agentOverrides")


def no_such_container(named: str, problem: str, known: Sequence[str]) -> Refused:
    """Say that nothing can be appended where the request says."""
    ids = ", ".join(known)
    return Refused(
        f"{named[:60]!r} {problem}",
        code="no-such-container",
        hint=f"its containers are {ids}" if ids else "without --to it runs after the root",
        named=named[:60],
        containers=list(known),
    )


class FlowAddition(NamedTuple):
    """What a file adds, and the resulting table."""

    roles: Mapping[str, RoleDefinition]
    """New roles, and replacements of existing ones."""

    flow: FlowDefinition
    added: tuple[str, ...]
    """The labels of what was added to the list."""

    agent_overrides: Mapping[str, AgentSpec]
    warnings: tuple[Problem, ...] = ()
    """What may be a mistake in the file."""


class Target(NamedTuple):
    """The workflow of the thread that something is appended to."""

    name: str
    roles: tuple[str, ...]
    flow: Flow
    container: str = ""
    """The place of the container; "" is the top, after the root."""


def find_target(target: Target, named: str | None) -> Target:
    """Return *target* with the container that *named* means: its id, else its name.

    Raises:
        Refused: there is none, or there are several.
    """
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
) -> FlowAddition:
    """Read a file that adds nodes to a flow: a list of them, or ``nodes`` and ``roles``.

    Raises:
        InvalidWorkflow: with every problem of the file, with its line.
    """
    findings = Findings(document)
    value: Any = document.value
    path: DocumentPath = ()
    fields: dict[str, Any] = {}
    if not isinstance(value, list):
        fields = read_appended_top(findings, value, _KEYS)
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
    return FlowAddition(every, flow, tuple(labels), overrides, findings.warnings)


def append_flow_addition(
    workflow: Node, addition: FlowAddition, *, timestamp: int
) -> tuple[Node, list[Node]]:
    """Build the workflow that results from adding *addition* to the Workflow node *workflow*.

    Returns:
        Its node, and the other new nodes; all else is as it was.

    Raises:
        NotCanonical: a text or a number in it is one no node can hold.
    """
    nodes: dict[NodeHash, Node] = {node.hash: node for node in addition.flow.used}
    payload: dict[str, Any] = {**workflow.payload, "roles": dict(workflow.payload["roles"])}
    for name, role in addition.roles.items():
        node, schema = build_role(role, timestamp=timestamp)
        nodes |= {schema.hash: schema, node.hash: node}
        payload["roles"][name] = reference(node.hash)
    flow = build_flow(addition.flow, timestamp=timestamp)
    nodes[flow.hash] = flow
    payload["flow"] = reference(flow.hash)
    if addition.agent_overrides:
        payload["agentOverrides"] = {
            **payload.get("agentOverrides", {}),
            **{role: write_agent(agent) for role, agent in addition.agent_overrides.items()},
        }
    return build_node(workflow.type, payload, timestamp=timestamp), list(nodes.values())
