"""Build a workflow: the bytes of a file in, nodes or a list of its problems out.

`workflow put`, `workflow validate` and project-local files share these checks; nothing is written.
"""

import os
import unicodedata
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from uwf_git.commands.workflow.checked_parts import CheckText, read_with_checks
from uwf_git.commands.workflow.files import includes_beside
from uwf_git.model.canonical import NotCanonical
from uwf_git.model.definition.append import (
    Addition,
    FlowAddition,
    Target,
    read_addition,
    read_flow_addition,
)
from uwf_git.model.definition.definition import Definition, FindUsed, Surroundings
from uwf_git.model.definition.findings import InvalidWorkflow
from uwf_git.model.definition.roles import CheckSchema, RolesFile
from uwf_git.model.definition.source import read_definition
from uwf_git.model.node import Node
from uwf_git.model.problem import Problem
from uwf_git.model.workflow import Graph, build_workflow
from uwf_git.model.yaml.include import BadYaml, Includes
from uwf_git.model.yaml.reader import parse_yaml

NotBuilt = (BadYaml, InvalidWorkflow, NotCanonical)
"""The errors for an invalid file."""


class BuiltWorkflow(NamedTuple):
    """A workflow as nodes, with the files that it includes."""

    name: str
    node: Node
    """The Workflow node."""

    closure: list[Node]
    """All nodes that it reaches."""

    included: Mapping[str, bytes]
    """The included files, byte for byte, by their path from its folder."""

    warnings: tuple[Problem, ...] = ()
    """What may be a mistake in the file."""


def read_workflow_source(
    source: bytes,
    includes: Includes,
    outside: Surroundings | None = None,
    *,
    is_checked: bool = False,
) -> Definition:
    """Read the workflow in the YAML file *source*, with the files it includes.

    *outside* are its name and the workflows that it may use; without it there are none. With
    *is_checked* its conditions and schemas are known to be right.

    Raises:
        BadYaml: it is not YAML.
        BadIncludes: files cannot be included.
        InvalidWorkflow: it has problems; the error lists all of them.
    """
    document = parse_yaml(source, includes=includes)
    found = outside or Surroundings()

    def read(check_text: CheckText, check_schema: CheckSchema) -> Definition:
        return read_definition(
            document,
            check_condition=check_text,
            check_schema=check_schema,
            surroundings=found._replace(check_text=check_text),
        )

    if is_checked:
        return read(lambda _text: None, lambda _schema: [])
    return read_with_checks(read)


def read_appended(
    source: bytes, includes: Includes, *, to: tuple[tuple[str, ...], Graph], file: RolesFile
) -> Addition:
    """Read the YAML file *source*, which adds to a workflow; *to* is its roles and its graph.

    *file* is the workflow's name, and the workflows that may play roles.

    It raises as ``read_workflow_source``, also for problems of the combined workflow.
    """
    document = parse_yaml(source, includes=includes)
    return read_with_checks(
        lambda check_condition, check_schema: read_addition(
            document,
            to=to,
            check_condition=check_condition,
            check_schema=check_schema,
            file=file._replace(check_text=check_condition),
        )
    )


def read_appended_nodes(
    source: bytes, includes: Includes, *, to: Target, outside: Surroundings
) -> FlowAddition:
    """Read the YAML file *source*, which adds nodes to a flow.

    It raises as ``read_workflow_source``.
    """
    document = parse_yaml(source, includes=includes)
    return read_with_checks(
        lambda check_text, check_schema: read_flow_addition(
            document,
            to=to,
            check_schema=check_schema,
            surroundings=outside._replace(check_text=check_text),
        )
    )


def build_source(
    source: bytes,
    includes: Includes,
    outside: Surroundings | None = None,
    *,
    timestamp: int,
    is_checked: bool = False,
) -> BuiltWorkflow:
    """Build the nodes of the workflow in the YAML file *source*.

    It raises as ``read_workflow_source``.

    Raises:
        NotCanonical: it has a text or a number that no node can hold.
    """
    definition = read_workflow_source(source, includes, outside, is_checked=is_checked)
    node, closure = build_workflow(definition, timestamp=timestamp)
    return BuiltWorkflow(definition.name, node, closure, includes.files, definition.warnings)


def problems_of(error: BadYaml | InvalidWorkflow | NotCanonical, path: str) -> list[Problem]:
    """Return the problems that *error* found in the file at *path* or in a file it includes."""
    if isinstance(error, NotCanonical):
        return [Problem("", error.message, None, path)]
    return in_file(error.problems, path)


def in_file(problems: Iterable[Problem], path: str) -> list[Problem]:
    """Return *problems* of the file at *path*, each with the file that it is in."""
    folder = os.path.dirname(path)
    return [
        each._replace(file=path if each.file is None else os.path.join(folder, each.file))
        for each in problems
    ]


class WorkflowValidation(NamedTuple):
    """The outcome of a check of a workflow file."""

    built: BuiltWorkflow | None
    """The workflow; None if it has a problem."""

    problems: tuple[Problem, ...]
    """All problems, each with its file."""

    warnings: tuple[Problem, ...] = ()
    """What may be a mistake, each with its file; only of a workflow without problems."""


def validate_workflow(
    source: bytes, *, path: str | None, shown: str, find_used: FindUsed | None = None
) -> WorkflowValidation:
    """Check the workflow file *source*.

    *path* is its path, for its includes; None for standard input. *shown* is its name in problems.
    *find_used* finds the workflows that it uses; without it there are none.
    """
    outside = outside_of(path, find_used)
    try:
        built = build_source(source, includes_beside(path), outside, timestamp=0)
    except NotBuilt as error:
        return WorkflowValidation(None, tuple(problems_of(error, shown)))
    return WorkflowValidation(built, (), tuple(in_file(built.warnings, shown)))


def outside_of(path: str | None, find_used: FindUsed | None) -> Surroundings:
    """Return what is outside of the workflow file at *path*; None is standard input."""
    stem = None if path is None else os.path.splitext(os.path.basename(path))[0]
    name = None if stem is None else unicodedata.normalize("NFC", stem)
    return Surroundings(name) if find_used is None else Surroundings(name, find_used=find_used)
