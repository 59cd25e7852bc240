"""Building a workflow: from the bytes of a file to nodes, or to all that is wrong with it.

Owns: the checks that every way into the store shares: put, validate, project-local files.
Knows nothing of: stores, names that are taken.
Always true: nothing is written; what was built has not a single problem.
"""

import os
from collections.abc import Mapping
from typing import NamedTuple

from uwf_git.agents.fence import run_fenced
from uwf_git.engine.expression import check_condition
from uwf_git.errors import Refused
from uwf_git.model.bad_yaml import BadYaml
from uwf_git.model.canonical import NotCanonical
from uwf_git.model.definition import Definition
from uwf_git.model.definition_append import Addition, read_addition
from uwf_git.model.definition_findings import InvalidWorkflow
from uwf_git.model.definition_source import read_definition
from uwf_git.model.include import Includes
from uwf_git.model.node import Node
from uwf_git.model.problem import Problem
from uwf_git.model.schema_check import check_schema
from uwf_git.model.transition import Graph
from uwf_git.model.workflow import build_workflow
from uwf_git.model.yaml_text import parse_yaml

NotBuilt = (BadYaml, InvalidWorkflow, NotCanonical)
"""What is raised for a file that is not right."""


class BuiltWorkflow(NamedTuple):
    """A workflow as nodes, and the files that it came from."""

    name: str
    node: Node
    """The Workflow node."""

    closure: list[Node]
    """All the nodes that it reaches."""

    included: Mapping[str, bytes]
    """The files that it includes, byte for byte, by their path from its folder."""


def read_source(source: bytes, includes: Includes) -> Definition:
    """Read the workflow that the YAML file *source* describes, with the files it includes.

    Raises:
        BadYaml: it is not YAML.
        BadIncludes: files cannot be included.
        InvalidWorkflow: it has problems; all of them are told.
    """
    return read_definition(
        parse_yaml(source, includes=includes),
        check_condition=_check_fenced,
        check_schema=check_schema,
    )


def read_appended(
    source: bytes, includes: Includes, *, to: tuple[tuple[str, ...], Graph]
) -> Addition:
    """Read the YAML file *source*, which adds to a workflow; *to* is its roles and its graph.

    Raises:
        As ``read_source``; what comes of the two is looked at as well.
    """
    return read_addition(
        parse_yaml(source, includes=includes),
        to=to,
        check_condition=_check_fenced,
        check_schema=check_schema,
    )


def build_source(source: bytes, includes: Includes, *, timestamp: int) -> BuiltWorkflow:
    """Build the nodes of the workflow that the YAML file *source* describes.

    Raises:
        As ``read_source``; NotCanonical: a text or a number in it is one no node can hold.
    """
    definition = read_source(source, includes)
    node, closure = build_workflow(definition, timestamp=timestamp)
    return BuiltWorkflow(definition.name, node, closure, includes.files)


def problems_of(error: BadYaml | InvalidWorkflow | NotCanonical, path: str) -> list[Problem]:
    """Give what *error* says is wrong with the file at *path*, each with the file that it is in."""
    if isinstance(error, NotCanonical):
        return [Problem("", error.message, None, path)]
    folder = os.path.dirname(path)
    return [
        each._replace(file=path if each.file is None else os.path.join(folder, each.file))
        for each in error.problems
    ]


def _check_fenced(condition: str) -> str | None:
    """Check a condition behind the fence: compiling a hostile regex can take for ever."""
    try:
        problem: str | None = run_fenced(
            lambda: check_condition(condition), what="the check of a condition"
        )
    except Refused as error:
        return error.message
    return problem
