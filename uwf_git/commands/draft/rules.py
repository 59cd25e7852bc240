"""What a draft may not say: anything that would run a command which nobody has typed."""

from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.commands.turn.agent_words import PERSON
from uwf_git.model.definition.findings import DocumentPath, Findings

_LISTS = ("nodes", "else")


def check_rules(findings: Findings, value: Mapping[str, Any]) -> None:
    """Add a finding for each command in the workflow file *value*, valid or not."""
    if "defaultAgent" in value:
        findings.add(
            ("defaultAgent",), "a draft names no agent; whoever runs the workflow chooses it"
        )
    overrides = value.get("agentOverrides")
    if overrides is not None and not isinstance(overrides, dict):
        findings.add(("agentOverrides",), f"a draft may only say `{{ROLE: {PERSON}}}` here")
    for role, agent in overrides.items() if isinstance(overrides, dict) else ():
        if agent != PERSON:
            findings.add(
                ("agentOverrides", role),
                f"a draft may only bind a role to {PERSON}; whoever runs it chooses other agents",
            )
    for path, fields in _list_runners(value):
        if "checks" in fields:
            findings.add((*path, "checks"), "a draft has no checks: they would be run as commands")


def _list_runners(value: Mapping[str, Any]) -> Iterator[tuple[DocumentPath, Mapping[str, Any]]]:
    """List the roles and the nodes of a file, and whatever verifies a node, each with its path."""
    roles = value.get("roles")
    for name, role in roles.items() if isinstance(roles, dict) else ():
        if isinstance(role, dict):
            yield ("roles", name), role
    waiting: list[tuple[DocumentPath, Any]] = [((), value)]
    waiting += [(("root",), value["root"])] if "root" in value else []
    while waiting:
        path, node = waiting.pop()
        if not isinstance(node, dict):
            continue
        yield path, node
        waiting.append(((*path, "verifiedBy"), node.get("verifiedBy")))
        for key in _LISTS:
            listed = node.get(key)
            waiting += [
                ((*path, key, index), item)
                for index, item in enumerate(listed if isinstance(listed, list) else ())
            ]
