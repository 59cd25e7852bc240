"""What the conditions and templates of a draft read, and whether anything sets it.

The engine takes what is not set for undefined, which is right for a workflow that a person knows;
a model that misspells a field would never learn of it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from uwf_git.engine.javascript.parser import (
    Access,
    Constant,
    Expression,
    Member,
    Name,
    Node,
    children,
    parse_expression,
)
from uwf_git.engine.javascript.template import parse_template
from uwf_git.engine.javascript.values import ExpressionFailed, from_units
from uwf_git.model.definition.definition import Definition, FlowDefinition
from uwf_git.model.definition.findings import DocumentPath, Findings, suggestion
from uwf_git.model.flow import FlowNode

_OF_ENGINE = ("iteration", "error", "errors", "output", "outputs")
_OF_BRANCH = "parallel_"
_META = re.compile(r"(?<![.\w])meta\.([A-Za-z_]\w*)")
_HISTORY = re.compile(
    r"""\brole\s*=\s*["']([^"']+)["']\s*\](?:\[[^\]]*\])?\.meta\.([A-Za-z_]\w*)"""
)
_PARTS = ("allOf", "anyOf", "oneOf")


def find_unset(findings: Findings, definition: Definition, *, root: DocumentPath) -> None:
    """Add a finding for each field that is read and that nothing sets; *root* is the flow's."""
    if definition.flow is None:
        _check_graph(findings, definition)
    elif definition.flow.language != "jsonata":
        _check_flow(findings, definition, definition.flow, root)


def find_path(place: str, root: DocumentPath) -> DocumentPath:
    """Return where in the file the node at a *place* of a flow is; *root* is that of its root."""
    path = root
    for part in place.split("/")[1:]:
        path = (*path, "else" if part.startswith("e") else "nodes", int(part.removeprefix("e")))
    return path


def _check_graph(findings: Findings, definition: Definition) -> None:
    for source, ways in definition.graph.items():
        conditions = [way.condition or "" for way in ways]
        asked = [(source, field) for each in conditions for field in _META.findall(each)]
        asked += [found for each in conditions for found in _HISTORY.findall(each)]
        for name, field in dict.fromkeys(asked):
            role = definition.roles.get(name)
            known = None if role is None else _list_fields(role.output_schema)
            if known is not None and field not in known:
                findings.add(
                    ("roles", name),
                    f"a condition after {source} reads meta.{field} of {name}, which its "
                    f"outputSchema does not have; {suggestion(field, known)}",
                )


def _check_flow(
    findings: Findings, definition: Definition, flow: FlowDefinition, root: DocumentPath
) -> None:
    known = dict.fromkeys([*_OF_ENGINE, *(definition.initial_state or {})])
    for place, fields in flow.nodes.items():
        node = FlowNode(place, fields["type"], fields)
        if node.kind in ("agent", "workflow", "map"):
            known[node.output] = None
        # A loop may have items too.
        known |= dict.fromkeys([node.item, f"{node.item}Index"] if "over" in fields else [])
        if node.kind == "agent":
            set_by_role = _list_fields(definition.roles[node.agent].output_schema)
            if set_by_role is None:
                return
            known |= dict.fromkeys(set_by_role)
        elif node.kind == "workflow":
            # Its result may set anything.
            return
    for place, fields in flow.nodes.items():
        for path, key in _list_asked(fields, find_path(place, root)):
            if key not in known and not key.startswith(_OF_BRANCH):
                findings.add(path, f"nothing sets state.{key}; {suggestion(key, list(known))}")


def _list_fields(schema: Any) -> list[str] | None:
    """List the fields of the answers that *schema* allows; None if that cannot be told."""
    if schema is True:
        return []
    if not isinstance(schema, dict) or "$ref" in schema or "patternProperties" in schema:
        return None
    parts = [_list_fields(part) for keyword in _PARTS for part in schema.get(keyword, ())]
    if None in parts or ("properties" not in schema and not parts):
        return None
    return [*schema.get("properties", {}), *(field for part in parts for field in part or ())]


def _list_asked(
    fields: Mapping[str, Any], path: DocumentPath
) -> Iterator[tuple[DocumentPath, str]]:
    """List the keys of the state that a node reads, each with its place in the file."""
    for name in ("condition", "over", "maxIterations", "retries", "timeout", "input"):
        for inner, text in _list_texts(fields.get(name), (*path, name)):
            is_template = name not in ("condition", "over") or "${" in text
            for expression in _parse(text, is_template=is_template):
                for key in _list_keys(expression.root):
                    yield inner, key


def _list_texts(value: Any, path: DocumentPath) -> Iterator[tuple[DocumentPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _list_texts(part, (*path, key))


def _parse(text: str, *, is_template: bool) -> list[Expression]:
    try:
        if not is_template:
            return [parse_expression(text)]
        return [part for part in parse_template(text).parts if isinstance(part, Expression)]
    except ExpressionFailed:
        # The validator has told it.
        return []


def _list_keys(root: Node) -> dict[str, None]:
    found: dict[str, None] = {}
    waiting: list[Node] = [root]
    while waiting:
        node = waiting.pop()
        waiting.extend(children(node))
        if isinstance(node, Access) and isinstance(node.target, Name):
            link = node.links[0]
            if node.target.name == "state" and isinstance(link, Member):
                key = link.key.value if isinstance(link.key, Constant) else None
                if isinstance(key, str):
                    found[from_units(key)] = None
    return found
