"""Workflow files: from a YAML document to a definition, or to all of its problems."""

from collections.abc import Mapping
from typing import Any

from uwf_git.model.definition.agents import read_agent, read_overrides
from uwf_git.model.definition.definition import (
    AgentSpec,
    Definition,
    FlowDefinition,
    RoleDefinition,
    Surroundings,
)
from uwf_git.model.definition.findings import (
    DocumentPath,
    Findings,
    InvalidWorkflow,
    shown,
    yaml_kind,
)
from uwf_git.model.definition.flow import LANGUAGES, FlowFile, read_flow, read_language
from uwf_git.model.definition.graph import (
    CheckCondition,
    check_routes,
    read_graph,
    warn_of_conditions,
)
from uwf_git.model.definition.roles import CheckSchema, RolesFile, read_roles
from uwf_git.model.limits import LIMITS, find_limit_problem
from uwf_git.model.workflow import Graph
from uwf_git.model.workflow_name import check_workflow_name
from uwf_git.model.yaml.reader import YamlDocument

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
        problem = _find_problem(name, setting)
        if problem:
            findings.add((*path, name), problem)
    return fields or None


def _find_problem(name: str, setting: Any) -> str | None:
    if name in _SWITCHES:
        return (
            None
            if isinstance(setting, bool)
            else f"must be true or false, not {yaml_kind(setting)}"
        )
    return find_limit_problem(name, setting)


__all__ = ["FLOW_KEYS", "GRAPH_KEYS", "InvalidWorkflow", "read_definition"]

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
# What a file without `root` says of its workflow; its other keys belong to the container.
_BARE_KEYS = (*_COMMON, "language")

_VERSION = "1.0"


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
    name = _read_name(findings, fields, outside.name if root == () else None)
    language = read_language(findings, fields) if is_flow else None
    find_used = None if is_flow else outside.find_used
    around = RolesFile(name, find_used, outside.check_text, language or LANGUAGES[0])
    roles: dict[str, RoleDefinition] = {}
    if not is_flow or named:
        roles = read_roles(findings, named, check_schema=check_schema, file=around)
    role_names = list(named) if isinstance(named, dict) else []
    graph: Graph = {}
    flow: FlowDefinition | None = None
    if root is not None:
        file = FlowFile(name, language, roles, outside)
        flow, added = read_flow(findings, root, _container(fields, root), file)
        roles |= {agent: role for agent, role in added.items() if agent not in role_names}
        role_names += [agent for agent in added if agent not in role_names]
    else:
        graph = _read_graph(findings, fields, roles, role_names, check_condition)
    definition = Definition(
        name=name,
        description=findings.read_optional_text((), fields, "description") or "",
        roles=roles,
        graph=graph,
        default_agent=_read_default(findings, fields.get("defaultAgent")),
        agent_overrides=read_overrides(findings, fields.get("agentOverrides"), roles=role_names),
        initial_state=_read_state(findings, fields.get("initialState"), is_flow=is_flow),
        config=read_config(findings, fields.get("config")),
        flow=flow,
        warnings=findings.warnings,
    )
    findings.raise_if_any()
    return definition


def _read_default(findings: Findings, value: Any) -> AgentSpec | None:
    return None if value is None else read_agent(findings, ("defaultAgent",), value)


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


def _container(fields: Mapping[str, Any], root: DocumentPath) -> Any:
    if root:
        return fields.get("root")
    return {key: item for key, item in fields.items() if key not in _BARE_KEYS}


def _check_version(findings: Findings, value: Any) -> None:
    # YAML reads 1.0 without quotes as a number.
    if value is None or value == _VERSION or (isinstance(value, float) and value == 1):
        return
    told = shown(value) if isinstance(value, str) else yaml_kind(value)
    findings.add(("version",), f"must be '{_VERSION}', not {told}")


def _read_graph(
    findings: Findings,
    fields: Mapping[str, Any],
    roles: Mapping[str, RoleDefinition],
    role_names: list[str],
    check_condition: CheckCondition,
) -> Graph:
    reading = read_graph(
        findings, fields.get("moderator"), roles=role_names, check_condition=check_condition
    )
    if role_names and reading.is_understood:
        check_routes(findings, reading, roles=role_names)
    warn_of_conditions(findings, reading, roles)
    return {name: tuple(ways) for name, ways in reading.entries.items()}


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
