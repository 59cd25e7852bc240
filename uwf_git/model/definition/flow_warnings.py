"""What in a flow may be a mistake: told, and accepted."""

from collections.abc import Mapping
from typing import Any

from uwf_git.errors import name_some
from uwf_git.model.definition.definition import RoleDefinition
from uwf_git.model.definition.findings import DocumentPath, Findings, shown, suggestion
from uwf_git.model.flow import DEFAULT_BOUND, SPLITTING, Flow, FlowNode, parent

_MERGED_ALWAYS = frozenset({"error", "errors", "outputs", "iteration"})


def warn_of_flow(
    findings: Findings,
    flow: Flow,
    *,
    paths: Mapping[str, DocumentPath],
    roles: Mapping[str, RoleDefinition],
) -> None:
    """Warn of what does not do what it seems to.

    Loops without a bound, branches that set the same key, agents without a role, and policies that
    give up no branch, of the nodes at *paths*.
    """
    for place, path in paths.items():
        node = flow.nodes[place]
        if node.kind in SPLITTING:
            _warn_of_failures(findings, path, flow, node)
        if node.kind == "loop" and not {"maxIterations", "over"} & node.fields.keys():
            findings.warn(
                path,
                f"no maxIterations is set, so the loop ends after {DEFAULT_BOUND} passes",
            )
        elif node.kind == "parallel":
            warn_of_branches(findings, path, flow, node, roles)
        elif node.kind == "agent" and roles:
            _warn_of_role(findings, (*path, "agentId"), node.fields.get("agentId"), roles)
            _warn_of_role(findings, (*path, "verifiedBy", "agentId"), node.verifier, roles)


def _warn_of_failures(findings: Findings, path: DocumentPath, flow: Flow, node: FlowNode) -> None:
    """Warn if failed branches of *node* stop the thread where the file seems to say otherwise."""
    policy = node.fields.get("onError")
    if "tolerate" in node.fields and policy != "continue":
        findings.warn(
            (*path, "tolerate"), "has no effect without onError: continue, which gives branches up"
        )
    elif policy in {None, "retry"} and _has_continue_around(flow, node.place):
        findings.warn(
            path,
            "onError: continue of what is around it does not give its branches up, which are "
            "threads of their own; write onError: continue here too, or stop if they are to be "
            "retried",
        )


def _has_continue_around(flow: Flow, place: str) -> bool:
    """Check if a container around *place*, in the same thread, goes on after a failure."""
    around = parent(place)
    while around is not None and flow.nodes[around].kind not in SPLITTING:
        if flow.nodes[around].fields.get("onError") == "continue":
            return True
        around = parent(around)
    return False


def _warn_of_role(
    findings: Findings, path: DocumentPath, named: str | None, roles: Mapping[str, RoleDefinition]
) -> None:
    if named is not None and named not in roles:
        findings.warn(
            path,
            f"no role is called {shown(named)}, so its agent gets no words and no schema; "
            f"{suggestion(named, list(roles))}",
        )


def warn_of_branches(
    findings: Findings,
    path: DocumentPath,
    flow: Flow,
    node: FlowNode,
    roles: Mapping[str, RoleDefinition],
) -> None:
    """Warn of the keys that several branches of the parallel *node* set."""
    merge = node.fields.get("merge", {})
    if _merges_all(merge) or node.fields.get("join") == "any":
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
            found[node.output] = None
            merge = node.fields.get("merge", {})
            if not _merges_all(merge):
                # Of what its items set, only the named keys come out.
                found |= dict.fromkeys(merge)
                continue
        waiting += [*flow.children(node.place), *flow.children(node.place, of_else=True)]
    return found


def _merges_all(merge: str | Mapping[str, str]) -> bool:
    """Check whether a policy is for every key."""
    return isinstance(merge, str) or "*" in merge


def _members(role: RoleDefinition | None) -> list[str]:
    schema: Any = None if role is None else role.output_schema
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return list(properties) if isinstance(properties, dict) else []
