"""Output files that branches would overwrite for one another: refused.

Branches that work apart (``isolation: worktree``) have a directory each.
"""

import re
from collections.abc import Mapping

from uwf_git.errors import name_some
from uwf_git.model.definition.definition import RoleDefinition
from uwf_git.model.definition.findings import DocumentPath, Findings, shown
from uwf_git.model.flow import Flow, FlowNode


def check_shared_files(
    findings: Findings,
    flow: Flow,
    *,
    paths: Mapping[str, DocumentPath],
    roles: Mapping[str, RoleDefinition],
) -> None:
    """Report branches that run at once in one directory and have the same ``outputFile``."""
    for place, node in flow.nodes.items():
        if place not in paths or "isolation" in node.fields:
            continue
        if node.kind == "parallel":
            _check_branches(findings, paths[place], flow, node, roles)
        elif node.kind == "map":
            _check_items(findings, paths[place], flow, node, roles)


def _check_items(
    findings: Findings,
    path: DocumentPath,
    flow: Flow,
    node: FlowNode,
    roles: Mapping[str, RoleDefinition],
) -> None:
    item = re.compile(rf"\$\{{.*\b{re.escape(node.item)}(?:Index)?\b")
    for file in sorted(_files_of(flow, node.place, roles)):
        if not item.search(file):
            own = f"report-${{state.{node.item}Index}}.json"
            findings.add(
                path,
                f"each item would write {shown(file)}; put the item into its path, as {own}, or "
                "set isolation: worktree",
            )


def _check_branches(
    findings: Findings,
    path: DocumentPath,
    flow: Flow,
    node: FlowNode,
    roles: Mapping[str, RoleDefinition],
) -> None:
    writers: dict[str, list[int]] = {}
    for number, branch in enumerate(flow.children(node.place)):
        for file in _files_of(flow, branch, roles):
            writers.setdefault(file, []).append(number)
    for file, numbers in writers.items():
        if len(numbers) > 1:
            which = name_some([f"nodes[{number}]" for number in numbers])
            findings.add(
                path,
                f"{which} would write {shown(file)} at once; give their roles an outputFile each, "
                "or set isolation: worktree",
            )


def _files_of(flow: Flow, top: str, roles: Mapping[str, RoleDefinition]) -> set[str]:
    """Return the output files of the agents at *top* and below it."""
    below = f"{top}/"
    agents = [
        str(node.fields.get("agentId"))
        for place, node in flow.nodes.items()
        if node.kind == "agent" and (place == top or place.startswith(below))
    ]
    files = (roles[agent].output_file for agent in agents if agent in roles)
    return {file for file in files if file is not None}
