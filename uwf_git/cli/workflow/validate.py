"""`uwf workflow validate`."""

import functools
import os
from collections.abc import Iterable
from typing import Any

import click

from uwf_git.cli.app.parameters import INPUT, Input
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.cli.workflow.put import MOST_BYTES, note_warnings
from uwf_git.commands.workflow.build import WorkflowValidation, validate_workflow
from uwf_git.commands.workflow.find import find_used
from uwf_git.errors import Refused
from uwf_git.model.definition.definition import FindUsed, UsedWorkflow
from uwf_git.model.problem import Problem
from uwf_git.model.text import one_line


@verb(
    "uwf workflow validate solve-issue.yaml --format text",
    "uwf workflow validate - < solve-issue.yaml | jq -r '.problems[].message'",
    exits={1: "the file is not valid; every problem is listed"},
)
@click.argument("file", type=INPUT)
def command(session: Session, file: Input) -> None:
    """Check a workflow file.

    Every problem is listed with its file and line, those of included files as well. Nothing is
    written, and no store is needed.
    """
    source = file.read_bytes(limit_bytes=MOST_BYTES)
    path = None if file.path == "-" else os.path.join(session.cwd, file.path)
    validated = validate_workflow(
        source, path=path, shown=file.name, find_used=find_used_here(session)
    )
    note_warnings(validated.warnings)
    emit(session, _document(file.name, validated), text=_text)
    if validated.problems:
        some = (
            "1 problem" if len(validated.problems) == 1 else f"{len(validated.problems)} problems"
        )
        raise Refused(
            f"{file.name} has {some}",
            code="invalid-file",
            path=file.name,
            count=len(validated.problems),
        )


def _document(name: str, validated: WorkflowValidation) -> dict[str, Any]:
    document: dict[str, Any] = {"file": name, "valid": validated.built is not None}
    if validated.built is not None:
        document |= {
            "name": validated.built.name,
            "workflow": validated.built.node.hash,
            "includes": list(validated.built.included),
        }
    document["problems"] = _rows(validated.problems)
    document["warnings"] = _rows(validated.warnings)
    return document


def _rows(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    return [
        {"file": each.file, "line": each.line, "path": each.path, "message": each.message}
        for each in problems
    ]


def find_used_here(session: Session) -> FindUsed:
    """Return how a file finds the workflows that it uses; the store is opened for the first."""

    @functools.cache
    def finder() -> FindUsed | None:
        from uwf_git.store.store import NotAStore  # noqa: PLC0415 (few files use a workflow)

        try:
            return find_used(session.open_store(), session.cwd)
        except NotAStore:
            return None

    def find(name: str) -> UsedWorkflow | str:
        known = finder()
        return f"workflow {name} is not known: no store is here" if known is None else known(name)

    return find


def _text(document: dict[str, Any]) -> str:
    if document["valid"]:
        included = len(document["includes"])
        files = {0: "", 1: ", with 1 included file"}.get(
            included, f", with {included} included files"
        )
        return f"{document['file']}: ok: workflow {document['name']}{files}"
    return "\n".join(one_line(_line(problem)) for problem in document["problems"])


def _line(problem: dict[str, Any]) -> str:
    place = problem["file"]
    if problem["line"] is not None:
        place += f":{problem['line']}"
    return ": ".join(filter(None, (place, problem["path"], problem["message"])))
