"""`uwf workflow show`: a workflow's nodes as one document."""

from collections.abc import Iterable, Mapping
from typing import Any

from uwf_git.commands.workflow.find import find_workflow
from uwf_git.model.names import NodeHash
from uwf_git.model.node import Node
from uwf_git.model.workflow import (
    Workflow,
    parse_flow_node,
    parse_graph,
    parse_role,
)
from uwf_git.store.store import Store


def show_workflow(store: Store, text: str, *, cwd: str | None = None) -> dict[str, Any]:
    """Return the document of the workflow that *text* names, with *cwd* also in its project."""
    found = find_workflow(store, text, cwd=cwd)
    document = describe_workflow(found.workflow, found.closure)
    if found.file is not None:
        document["file"] = found.file
    if found.shadows is not None:
        document["shadows"] = found.shadows
    return document


def describe_workflow(workflow: Workflow, closure: Iterable[Node]) -> dict[str, Any]:
    nodes = {node.hash: node for node in closure}
    roles: dict[str, Any] = {}
    for name, hash_ in workflow.roles.items():
        role = parse_role(nodes[hash_])
        roles[name] = {
            "hash": hash_,
            "description": role.description,
            "systemPrompt": role.system_prompt,
            "outputSchema": nodes[role.output_schema].payload,
        }
        if role.extract_prompt is not None:
            roles[name]["extractPrompt"] = role.extract_prompt
        if role.checks:
            roles[name]["checks"] = list(role.checks)
        if role.output_file is not None:
            roles[name]["outputFile"] = role.output_file
        if role.input_files:
            roles[name]["inputFiles"] = list(role.input_files)
    document: dict[str, Any] = {
        "workflow": workflow.hash,
        "name": workflow.name,
        "description": workflow.description,
        "roles": roles,
        **_describe_moves(workflow, nodes),
    }
    if workflow.default_agent is not None:
        document["defaultAgent"] = workflow.default_agent
    if workflow.agent_overrides:
        document["agentOverrides"] = dict(workflow.agent_overrides)
    if workflow.initial_state is not None:
        document["initialState"] = workflow.initial_state
    if workflow.config:
        document["config"] = dict(workflow.config)
    return document


def _describe_moves(workflow: Workflow, nodes: Mapping[NodeHash, Node]) -> dict[str, Any]:
    """Describe the graph, or the flow: its table as it is stored."""
    if workflow.flow is not None:
        flow = nodes[workflow.flow]
        parse_flow_node(flow)
        return {"flow": {"hash": flow.hash, **flow.payload}}
    moderator = nodes[workflow.get_moderator()]
    rows = [
        {
            "from": position,
            "transitions": [{"to": way.to, "condition": way.condition} for way in ways],
        }
        for position, ways in parse_graph(moderator).items()
    ]
    return {"moderator": {"hash": moderator.hash, "graph": rows}}
