"""Roles in a workflow file: what is under ``roles``, and the defaults."""

from collections.abc import Callable
from typing import Any, NamedTuple

from uwf_git.model.definition.agents import read_command
from uwf_git.model.definition.definition import (
    CheckText,
    FindUsed,
    FlowText,
    RoleDefinition,
    UsedWorkflow,
    not_checked,
)
from uwf_git.model.definition.findings import DocumentPath, Findings, shown, yaml_kind
from uwf_git.model.flow import MAX_NESTING
from uwf_git.model.names import fold, is_node_hash
from uwf_git.model.path_below import check_path_below
from uwf_git.model.problem import Problem
from uwf_git.model.workflow import END, START
from uwf_git.model.workflow_name import check_name

CheckSchema = Callable[[Any], list[Problem]]

SENTINELS = {
    START: START,
    "__START__": START,
    "__start__": START,
    END: END,
    "__END__": END,
    "__end__": END,
}
"""Every spelling of the two ends of a graph (seeds 000, 001, 003), and the stored spelling."""

_OF_AGENT = ("systemPrompt", "extractPrompt", "checks", "outputFile", "inputFiles")
MOST_CHECKS = 20

ROLE_KEYS = ("name", "description", *_OF_AGENT, "outputSchema", "schema", "workflow")


class RolesFile(NamedTuple):
    name: str = ""

    find_used: FindUsed | None = None
    """Finds a workflow that plays a role; None: in a flow, a node does that."""

    check_text: CheckText = not_checked
    language: str = "javascript"


_FLOW_FILE = RolesFile()


def read_roles(
    findings: Findings,
    value: Any,
    *,
    check_schema: CheckSchema,
    file: RolesFile = _FLOW_FILE,
) -> dict[str, RoleDefinition]:
    """Read what is under ``roles``; a role with a problem is left out and reported."""
    path = ("roles",)
    if value is None or value == {}:
        findings.add(path, "a workflow needs at least one role")
        return {}
    if not isinstance(value, dict):
        findings.add(path, f"must be a mapping from names to roles, not {yaml_kind(value)}")
        return {}
    roles: dict[str, RoleDefinition] = {}
    for name, content in value.items():
        _check_role_name(findings, (*path, name), name)
        role = _read_role(findings, name, content, check_schema=check_schema, file=file)
        if role:
            roles[name] = role
    return roles


def _check_role_name(findings: Findings, path: DocumentPath, name: str) -> None:
    if name in SENTINELS:
        findings.add(path, f"{name} is an end of the graph and cannot be a role")
        return
    problem = check_name(name)
    if problem:
        findings.add(path, f"{shown(name)} cannot be a role's name: {problem}")


def _read_role(
    findings: Findings, name: str, content: Any, *, check_schema: CheckSchema, file: RolesFile
) -> RoleDefinition | None:
    path = ("roles", name)
    if isinstance(content, dict) and "$ref" in content:
        findings.add((*path, "$ref"), "a file cannot refer to the store; write the role out here")
        return None
    # A role may be only its name: all of its fields have a default.
    fields = findings.read_fields(path, {} if content is None else content, ROLE_KEYS)
    if fields is None:
        return None
    given = findings.read_optional_text(path, fields, "name")
    if given is not None and given != name:
        findings.add((*path, "name"), f"the role is called {shown(name)} here, not {shown(given)}")
    used = _find_used(findings, path, fields, file)
    return RoleDefinition(
        name=name,
        description=findings.read_optional_text(path, fields, "description") or "",
        system_prompt=findings.read_optional_text(path, fields, "systemPrompt") or "",
        extract_prompt=findings.read_optional_text(path, fields, "extractPrompt"),
        output_schema=_read_schema(findings, path, content or {}, check_schema=check_schema),
        workflow=None if used is None else used.hash,
        used=() if used is None else used.nodes,
        checks=_read_checks(findings, (*path, "checks"), fields.get("checks")),
        output_file=_read_path(findings, (*path, "outputFile"), fields.get("outputFile"), file),
        input_files=_read_paths(findings, (*path, "inputFiles"), fields.get("inputFiles"), file),
    )


def _read_path(findings: Findings, path: DocumentPath, value: Any, file: RolesFile) -> str | None:
    """Read a template for a path below the work directory."""
    text = None if value is None and path[-1] == "outputFile" else findings.read_text(path, value)
    if text is None:
        return None
    if "${" in text:
        problem = file.check_text(FlowText("template", text, file.language))
    else:
        problem = check_path_below(text)
    if problem is not None:
        findings.add(path, problem)
    return text


def _read_paths(
    findings: Findings, path: DocumentPath, value: Any, file: RolesFile
) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not value:
        told = "an empty list" if isinstance(value, list) else yaml_kind(value)
        findings.add(path, f"must be a list of paths or patterns, not {told}")
        return ()
    read = [_read_path(findings, (*path, n), each, file) for n, each in enumerate(value)]
    return tuple(each for each in read if each is not None)


def _read_checks(findings: Findings, path: DocumentPath, value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not value:
        told = "an empty list" if isinstance(value, list) else yaml_kind(value)
        findings.add(path, f"must be a list of commands, not {told}")
        return ()
    if len(value) > MOST_CHECKS:
        findings.add(path, f"has {len(value)} commands, of at most {MOST_CHECKS}")
    read = [read_command(findings, (*path, index), each) for index, each in enumerate(value)]
    return tuple(each for each in read if each is not None)


def _find_used(
    findings: Findings, path: DocumentPath, fields: dict[str, Any], file: RolesFile
) -> UsedWorkflow | None:
    named = findings.read_optional_text(path, fields, "workflow")
    if named is None:
        return None
    for key in _OF_AGENT:
        if key in fields:
            findings.add((*path, key), "is for an agent, and a workflow plays this role")
    path = (*path, "workflow")
    if file.find_used is None:
        findings.add(path, "in a flow a node of type workflow runs another workflow")
        return None
    found = file.find_used(named)
    problem = found if isinstance(found, str) else None
    if named == file.name:
        problem = f"workflow {named} cannot contain itself"
    elif not isinstance(found, str) and file.name in found.list_names():
        problem = f"workflow {file.name} cannot contain itself: {named} contains it"
    elif not isinstance(found, str) and found.nesting() >= MAX_NESTING:
        problem = f"more than {MAX_NESTING} threads would lie in one another"
    if problem is not None or isinstance(found, str):
        findings.add(path, problem or "")
        return None
    return found


def _read_schema(
    findings: Findings, path: DocumentPath, content: dict[str, Any], *, check_schema: CheckSchema
) -> dict[str, Any] | bool:
    anything: dict[str, Any] = {"type": "object"}
    keys = [key for key in ("outputSchema", "schema") if key in content]
    if not keys:
        return anything
    if len(keys) > 1:
        findings.add((*path, "schema"), "outputSchema and schema mean the same; keep one of them")
    path = (*path, keys[0])
    schema = content[keys[0]]
    # An empty key is nearly always a schema that lost its indentation: no default.
    if not isinstance(schema, dict | bool):
        findings.add(path, f"must be a JSON Schema written out here, not {yaml_kind(schema)}")
        return anything
    if isinstance(schema, dict) and is_node_hash(fold(str(schema.get("$ref")))):
        findings.add((*path, "$ref"), "a file cannot refer to the store; write the schema here")
        return anything
    for problem in check_schema(schema):
        findings.add_below(path, problem)
    return schema
