"""`uwf workflow validate`: is a file right, and if not, what is wrong with it.

Always true: nothing is written, and no store is needed. What is accepted here is accepted by
`uwf workflow put`, but for a name that differs from a registered one by case only.
"""

from typing import NamedTuple

from uwf_git.commands.workflow_build import (
    BuiltWorkflow,
    NotBuilt,
    build_source,
    problems_of,
)
from uwf_git.commands.workflow_files import includes_beside
from uwf_git.model.problem import Problem


class Validated(NamedTuple):
    """What was found in a workflow file."""

    built: BuiltWorkflow | None
    """The workflow; None if there is a problem."""

    problems: tuple[Problem, ...]
    """All of them, each with its file."""


def validate_workflow(source: bytes, *, path: str | None, shown: str) -> Validated:
    """Tell what is wrong with the workflow file *source*.

    *path* is where it lies, for what it includes; None of standard input. *shown* is what
    problems call it.
    """
    try:
        built = build_source(source, includes_beside(path), timestamp=0)
    except NotBuilt as error:
        return Validated(None, tuple(problems_of(error, shown)))
    return Validated(built, ())
