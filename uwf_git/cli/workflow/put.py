"""`uwf workflow put`."""

import os
from collections.abc import Iterable
from typing import Any

import click

from uwf_git.cli.app.parameters import INPUT, Input
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.commands.workflow.build import PutWorkflow, in_file, put_workflow
from uwf_git.model.problem import Problem
from uwf_git.model.yaml.reader import MAX_SOURCE_BYTES

MOST_BYTES = 64 * MAX_SOURCE_BYTES
"""More than a workflow may have, so that its own limit refuses first."""


@verb(
    "uwf workflow put solve-issue.yaml",
    exits={1: "the file is not valid; every problem is listed with its line"},
)
@click.argument("file", type=INPUT)
def command(session: Session, file: Input) -> None:
    """Register a workflow from a YAML file.

    Its name is the one in the file. Putting the same file again changes nothing; putting a changed
    one adds a version. Threads that run keep the version they began with.

    `!include PATH` in the file stands for another file below its folder: the value of a YAML or
    JSON file, or the text of any other. PATH is relative to the file that contains it.
    """
    put = put_file(session, file)
    emit(
        session,
        {
            "name": put.name,
            "workflow": put.workflow,
            "version": put.version,
            "changed": put.changed,
            "warnings": [each.as_document() for each in put.warnings],
        },
        text=render_unwarned,
    )


def render_unwarned(document: dict[str, Any]) -> str:
    """Return *document* as text, without the warnings, which are on standard error already."""
    from uwf_git.cli.output.render_text import render_text  # noqa: PLC0415 (one format needs it)

    shown = {key: value for key, value in document.items() if key != "warnings"}
    return render_text(shown)


def put_file(session: Session, file: Input, *, workdir: str | None = None) -> PutWorkflow:
    """Register the workflow in *file*, and note its warnings.

    Its agents are trusted to run in *workdir*.
    """
    source = file.read_bytes(limit_bytes=MOST_BYTES)
    path = None if file.path == "-" else os.path.join(session.cwd, file.path)
    store = session.open_store(create=True)
    put = put_workflow(store, caller_of(session), source, path=path, workdir=workdir)
    warnings = in_file(put.warnings, file.name)
    note_warnings(warnings)
    return put._replace(warnings=tuple(warnings))


def note_warnings(warnings: Iterable[Problem]) -> None:
    """Note what may be a mistake in a workflow file, a line each."""
    for each in warnings:
        place = f"{each.file}:{each.line}" if each.line is not None else str(each.file)
        note(f"warning: {': '.join(filter(None, (place, each.path, each.message)))}")
