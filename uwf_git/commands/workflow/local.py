"""Project-local workflows: files in `.workflows/` folders that need no registration.

Nothing above the root of the git repository is read, nor, outside of one, above the current
directory, and no link leads out of it.
"""

import os
import shlex
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from uwf_git.commands.workflow.files import includes_beside, read_below
from uwf_git.errors import Refused
from uwf_git.model.problem import Problem
from uwf_git.model.workflow_name import check_workflow_name
from uwf_git.model.yaml.include import CannotInclude

if TYPE_CHECKING:
    from uwf_git.commands.workflow.build import BuiltWorkflow
    from uwf_git.model.definition.definition import FindUsed

FOLDER = ".workflows"

_RENAME = "change it, or move it elsewhere: every .yaml file there is read as a workflow"

# In order of precedence.
_SUFFIXES = (".yaml", ".yml")


class LocalFile(NamedTuple):
    """A file of the project that should be a workflow."""

    name: str
    """Its file name without the suffix; the workflow must have the same name."""

    path: str
    root: str
    """The project's root: no link of the file may lead out of it."""

    is_shipped: bool = False
    """It comes with uwf, whose tests have checked its conditions and schemas."""


class BadLocalWorkflow(Refused):
    """A file of the project is no valid workflow."""

    code = "bad-local-workflow"

    def __init__(
        self,
        file: LocalFile,
        why: str,
        *,
        problems: Sequence[Problem] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(
            f"{file.path}: {why}",
            hint=hint or f"`uwf workflow validate {shlex.quote(file.path)}` checks it again",
            path=file.path,
            problems=[problem.as_document() for problem in problems],
        )
        self.why = why


def list_local(cwd: str) -> list[LocalFile]:
    """List the workflow files of the project around *cwd* by name; of each name the nearest."""
    nearest: dict[str, LocalFile] = {}
    root, folders = _folders(os.path.abspath(cwd))
    for folder in folders:
        for file in _files(folder, root):
            nearest.setdefault(file.name, file)
    return sorted(nearest.values())


def find_local(cwd: str, name: str) -> LocalFile | None:
    """Return the file of the project that *name* names, or None."""
    if check_workflow_name(name) is not None:
        return None
    return next((file for file in list_local(cwd) if file.name == name), None)


def build_local(file: LocalFile, find_used: "FindUsed | None" = None) -> "BuiltWorkflow":
    """Build the workflow in *file*; its nodes have the time of the file.

    *find_used* finds the workflows that it uses; without it there are none.

    Raises:
        BadLocalWorkflow: it cannot be read, is invalid, or has another name inside.
    """
    # Each start of a thread imports this module, and few projects have such files: YAML, JSON
    # Schema and JSONata take 200 ms to import.
    from uwf_git.commands.workflow.build import (  # noqa: PLC0415 (see above)
        NotBuilt,
        build_source,
        outside_of,
        problems_of,
    )

    problem = check_workflow_name(file.name)
    if problem is not None:
        raise BadLocalWorkflow(
            file, f"the file's name cannot be a workflow's: {problem}", hint=_RENAME
        )
    try:
        source = read_below(file.root, os.path.relpath(file.path, file.root))
        written_ms = max(os.stat(file.path).st_mtime_ns // 1_000_000, 0)
        includes, outside = includes_beside(file.path), outside_of(file.path, find_used)
        built = build_source(
            source, includes, outside, timestamp=written_ms, is_checked=file.is_shipped
        )
    except CannotInclude as error:
        raise BadLocalWorkflow(file, error.problem, hint=_RENAME) from None
    except NotBuilt as error:
        problems = problems_of(error, file.path)
        raise BadLocalWorkflow(file, error.message, problems=problems) from error
    if built.name != file.name:
        hint = f"rename the file to {built.name}.yaml, or write `name: {file.name}`"
        raise BadLocalWorkflow(file, f"its `name` is {built.name}", hint=hint)
    return built


def _folders(cwd: str) -> tuple[str, list[str]]:
    """Return the project's root, and the folders that may hold its workflows, nearest first."""
    passed = [cwd]
    while not os.path.lexists(os.path.join(passed[-1], ".git")):
        parent = os.path.dirname(passed[-1])
        if parent == passed[-1]:
            # Outside of a repository the project is the current directory.
            passed = [cwd]
            break
        passed.append(parent)
    return passed[-1], [os.path.join(each, FOLDER) for each in passed]


def _files(folder: str, root: str) -> Iterator[LocalFile]:
    try:
        names = sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return
    for suffix in _SUFFIXES:
        for name in names:
            stem = name.removesuffix(suffix)
            if stem != name and not name.startswith("."):
                yield LocalFile(
                    unicodedata.normalize("NFC", stem), os.path.join(folder, name), root
                )
