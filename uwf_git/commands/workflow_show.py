"""`uwf workflow show`: what a workflow says, as one document.

Owns: putting its nodes together again. Always true: it reads, and changes nothing.
"""

from typing import Any

from uwf_git.commands.find_workflow import find_workflow
from uwf_git.model.workflow import parse_graph, parse_role
from uwf_git.store.store import Store


def show_workflow(store: Store, text: str) -> dict[str, Any]:
    """Give the workflow that *text* (a name or a hash) means; the fields of its file and more.

    Raises:
        NoSuchWorkflow, AmbiguousNode: none is meant, or several.
        StoreDamaged: it cannot be read.
    """
    found = find_workflow(store, text)
    workflow = found.workflow
    nodes = {node.hash: node for node in found.closure}
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
    graph = parse_graph(nodes[workflow.moderator])
    document: dict[str, Any] = {
        "workflow": workflow.hash,
        "name": workflow.name,
        "description": workflow.description,
        "roles": roles,
        "moderator": {
            "hash": workflow.moderator,
            "graph": [
                {
                    "from": position,
                    "transitions": [{"to": way.to, "condition": way.condition} for way in ways],
                }
                for position, ways in graph.items()
            ],
        },
    }
    if workflow.default_agent is not None:
        document["defaultAgent"] = workflow.default_agent
    if workflow.agent_overrides:
        document["agentOverrides"] = dict(workflow.agent_overrides)
    if workflow.initial_state is not None:
        document["initialState"] = workflow.initial_state
    return document
