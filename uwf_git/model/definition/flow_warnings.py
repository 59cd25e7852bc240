"""What in a flow may be a mistake: told, and accepted."""

from collections.abc import Mapping
from typing import Any

from uwf_git.errors import name_some
from uwf_git.model.definition.definition import RoleDefinition
from uwf_git.model.definition.findings import DocumentPath, Findings, shown, suggestion
from uwf_git.model.flow import DEFAULT_BOUND, Flow, FlowNode

_MERGED_ALWAYS = frozenset({"error", "errors", "outputs", "iteration"})


def warn_of_flow(
    findings: Findings,
    flow: Flow,
    *,
    paths: Mapping[str, DocumentPath],
    roles: Mapping[str, RoleDefinition],
    has_words: bool = True,
) -> None:
    """Warn of loops without a bound, branches that set the same key, and agents without a role.

    Only of nodes that have a path; of agents only if *has_words*: others have a role.
    """
    for place, path in paths.items():
        node = flow.nodes[place]
        if node.kind == "loop" and not {"maxIterations", "over"} & node.fields.keys():
            findings.warn(
                path,
                f"no maxIterations is set, so the loop ends after {DEFAULT_BOUND} passes",
            )
        elif node.kind == "parallel":
            _warn_of_branches(findings, path, flow, node, roles)
        elif node.kind == "agent" and roles and has_words:
            _warn_of_role(findings, (*path, "agentId"), node.fields.get("agentId"), roles)
            _warn_of_role(findings, (*path, "verifiedBy", "agentId"), node.verifier, roles)


def _warn_of_role(
    findings: Findings, path: DocumentPath, named: str | None, roles: Mapping[str, RoleDefinition]
) -> None:
    if named is not None and named not in roles:
        findings.warn(
            path,
            f"no role is called {shown(named)}, so its agent gets no words and no schema; "
            f"{suggestion(named, list(roles))}",
        )


def _warn_of_branches(
    findings: Findings,
    path: DocumentPath,
    flow: Flow,
    node: FlowNode,
    roles: Mapping[str, RoleDefinition],
) -> None:
    merge = node.fields.get("merge", {})
    if isinstance(merge, str) or "*" in merge:
        return
    setters: dict[str, list[int]] = {}
    for number, branch in enumerate(flow.children(node.place)):
        for key in _keys_of(flow, branch, roles):
            setters.setdefault(key, []).append(number)
    for key, numbers in setters.items():
        settled = key in merge or key in _MERGED_ALWAYS or key.startswith("parallel_")
        if len(numbers) > 1 and not settled:
            which = name_some([f"nodes[{number}]" for number in numbers])
            findings.warn(
                path,
                f"{shown(key)} is set by {which}, which is a conflict if they differ; say which "
                f"counts: merge: {{{key}: last}}",
            )


def _keys_of(flow: Flow, place: str, roles: Mapping[str, RoleDefinition]) -> dict[str, None]:
    """List the keys of the state that the agents at and below *place* are known to set."""
    found: dict[str, None] = {}
    waiting = [place]
    while waiting:
        node = flow.nodes.get(waiting.pop())
        if node is None:
            continue
        if node.kind == "agent" and "agentId" in node.fields:
            found |= dict.fromkeys([*_members(roles.get(node.agent)), node.output])
            if node.verifier is not None:
                found[node.verdict_output] = None
        elif node.kind == "workflow":
            found[node.output] = None
        elif node.kind == "map":
            # Of what its items set, only the named keys come out.
            merge = node.fields.get("merge", {})
            found |= dict.fromkeys([*(merge if isinstance(merge, dict) else ()), node.output])
            continue
        waiting += [*flow.children(node.place), *flow.children(node.place, of_else=True)]
    return found


def _members(role: RoleDefinition | None) -> list[str]:
    schema: Any = None if role is None else role.output_schema
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return list(properties) if isinstance(properties, dict) else []
