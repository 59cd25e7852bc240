"""Build a workflow: the bytes of a file in, nodes or a list of its problems out.

`workflow put`, `workflow validate` and project-local files share these checks; nothing is written.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.commands.workflow.checked_parts import read_with_checks
from uwf_git.commands.workflow.files import includes_beside
from uwf_git.model.canonical import NotCanonical
from uwf_git.model.definition.append import Addition, read_addition
from uwf_git.model.definition.definition import Definition
from uwf_git.model.definition.findings import InvalidWorkflow
from uwf_git.model.definition.source import read_definition
from uwf_git.model.node import Node
from uwf_git.model.problem import Problem
from uwf_git.model.transition import Graph
from uwf_git.model.workflow import build_workflow
from uwf_git.model.yaml.bad_yaml import BadYaml
from uwf_git.model.yaml.include import Includes
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


def read_workflow_source(source: bytes, includes: Includes) -> Definition:
    """Read the workflow in the YAML file *source*, with the files it includes.

    Raises:
        BadYaml: it is not YAML.
        BadIncludes: files cannot be included.
        InvalidWorkflow: it has problems; the error lists all of them.
    """
    document = parse_yaml(source, includes=includes)
    return read_with_checks(
        lambda check_condition, check_schema: read_definition(
            document, check_condition=check_condition, check_schema=check_schema
        )
    )


def read_appended(
    source: bytes, includes: Includes, *, to: tuple[tuple[str, ...], Graph]
) -> Addition:
    """Read the YAML file *source*, which adds to a workflow; *to* is its roles and its graph.

    It raises as ``read_workflow_source``, also for problems of the combined workflow.
    """
    document = parse_yaml(source, includes=includes)
    return read_with_checks(
        lambda check_condition, check_schema: read_addition(
            document, to=to, check_condition=check_condition, check_schema=check_schema
        )
    )


def build_source(source: bytes, includes: Includes, *, timestamp: int) -> BuiltWorkflow:
    """Build the nodes of the workflow in the YAML file *source*.

    It raises as ``read_workflow_source``.

    Raises:
        NotCanonical: it has a text or a number that no node can hold.
    """
    definition = read_workflow_source(source, includes)
    node, closure = build_workflow(definition, timestamp=timestamp)
    return BuiltWorkflow(definition.name, node, closure, includes.files)


def problems_of(error: BadYaml | InvalidWorkflow | NotCanonical, path: str) -> list[Problem]:
    """Return the problems that *error* found in the file at *path* or in a file it includes."""
    if isinstance(error, NotCanonical):
        return [Problem("", error.message, None, path)]
    folder = os.path.dirname(path)
    return [
        each._replace(file=path if each.file is None else os.path.join(folder, each.file))
        for each in error.problems
    ]


class WorkflowValidation(NamedTuple):
    """The outcome of a check of a workflow file."""

    built: BuiltWorkflow | None
    """The workflow; None if it has a problem."""

    problems: tuple[Problem, ...]
    """All problems, each with its file."""


def validate_workflow(source: bytes, *, path: str | None, shown: str) -> WorkflowValidation:
    """Check the workflow file *source*.

    *path* is its path, for its includes; None for standard input. *shown* is its name in problems.
    """
    try:
        built = build_source(source, includes_beside(path), timestamp=0)
    except NotBuilt as error:
        return WorkflowValidation(None, tuple(problems_of(error, shown)))
    return WorkflowValidation(built, ())
