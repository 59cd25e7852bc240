"""Workflow files: from a YAML document to a definition, or to all of its problems."""

from typing import Any

from uwf_git.model.definition.agents import read_agent, read_overrides
from uwf_git.model.definition.config import read_config
from uwf_git.model.definition.definition import Definition
from uwf_git.model.definition.findings import Findings, InvalidWorkflow, shown, yaml_kind
from uwf_git.model.definition.graph import CheckCondition, read_graph
from uwf_git.model.definition.roles import CheckSchema, read_roles
from uwf_git.model.definition.routes import check_routes
from uwf_git.model.workflow_name import check_workflow_name
from uwf_git.model.yaml.reader import YamlDocument

__all__ = ["InvalidWorkflow", "read_definition"]

_KEYS = (
    "name",
    "description",
    "roles",
    "moderator",
    "defaultAgent",
    "agentOverrides",
    "initialState",
    "config",
)
_CONTAINER_KEYS = ("root", "flow", "version")


def read_definition(
    document: YamlDocument, *, check_condition: CheckCondition, check_schema: CheckSchema
) -> Definition:
    """Read a workflow file, in any spelling that the seeds use.

    *check_condition* returns what is wrong with a JSONata condition, *check_schema* with a JSON
    Schema; they are arguments since those libraries are slow to import.

    Raises:
        InvalidWorkflow: with every problem of the file, in the order of its lines.
    """
    findings = Findings(document)
    fields = _read_top(findings, document.value)
    named = fields.get("roles")
    role_names = list(named) if isinstance(named, dict) else []
    roles = read_roles(findings, named, check_schema=check_schema)
    reading = read_graph(
        findings, fields.get("moderator"), roles=role_names, check_condition=check_condition
    )
    if role_names and reading.is_understood:
        check_routes(findings, reading, roles=role_names)
    default = fields.get("defaultAgent")
    definition = Definition(
        name=_read_name(findings, fields),
        description=findings.read_optional_text((), fields, "description") or "",
        roles=roles,
        graph={name: tuple(ways) for name, ways in reading.entries.items()},
        default_agent=None if default is None else read_agent(findings, ("defaultAgent",), default),
        agent_overrides=read_overrides(findings, fields.get("agentOverrides"), roles=role_names),
        initial_state=_read_state(findings, fields.get("initialState")),
        config=read_config(findings, fields.get("config")),
    )
    findings.raise_if_any()
    return definition


def _read_top(findings: Findings, value: Any) -> dict[str, Any]:
    """Return the fields of the file; if it has no readable ones, raise at once."""
    if not isinstance(value, dict):
        findings.add(
            (), f"a workflow is a mapping with name, roles and moderator, not {yaml_kind(value)}"
        )
        findings.raise_if_any()
    planned = [key for key in _CONTAINER_KEYS if key in value]
    for key in planned:
        findings.add((key,), f"{key!r} (container workflows) is not supported yet")
    known = {key: item for key, item in value.items() if key not in planned}
    fields = findings.read_fields((), known, _KEYS) or {}
    if "root" in planned or "flow" in planned:
        # Without the container, the parts that it stands for would be reported as missing.
        findings.raise_if_any()
    return fields


def _read_name(findings: Findings, fields: dict[str, Any]) -> str:
    if "name" not in fields:
        findings.add((), "'name' is missing")
        return ""
    name = findings.read_text(("name",), fields["name"])
    if name is None:
        return ""
    problem = check_workflow_name(name)
    if problem:
        findings.add(("name",), f"{shown(name)} cannot be a workflow's name: {problem}")
    return name


def _read_state(findings: Findings, value: Any) -> dict[str, Any] | None:
    if value is None or isinstance(value, dict):
        return value
    findings.add(("initialState",), f"must be a mapping, not {yaml_kind(value)}")
    return None
