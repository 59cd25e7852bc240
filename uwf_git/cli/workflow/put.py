"""`uwf workflow put`."""

import os

import click

from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.calling import caller_of
from uwf_git.cli.parameters import INPUT, Input
from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.workflow_put import PutWorkflow, put_workflow
from uwf_git.model.yaml_text import MAX_SOURCE_BYTES

MOST_BYTES = 64 * MAX_SOURCE_BYTES
"""More than a workflow may have, so that the refusal is the workflow's own."""


@verb(
    "uwf workflow put workflows/solve-issue.yaml",
    exits={1: "the file is not right; every problem is listed with its line"},
)
@click.argument("file", type=INPUT)
def command(session: Session, file: Input) -> None:
    """Register a workflow from a YAML file.

    Its name is the one in the file. Putting the same file again changes nothing; putting a
    changed one adds a version. Threads that run keep the version they began with.

    `!include PATH` in the file stands for another file below its folder: what a YAML or JSON
    file says, or the text of any other. PATH is relative to the file that it stands in.
    """
    put = put_file(session, file)
    emit(
        session,
        {
            "name": put.name,
            "workflow": put.workflow,
            "version": put.version,
            "changed": put.changed,
        },
    )
    pack_when_due(session, session.open_store())


def put_file(session: Session, file: Input) -> PutWorkflow:
    """Register the workflow in *file*.

    Raises:
        What ``Input.read_bytes`` and ``put_workflow`` raise.
    """
    source = file.read_bytes(limit_bytes=MOST_BYTES)
    path = None if file.path == "-" else os.path.join(session.cwd, file.path)
    return put_workflow(session.open_store(create=True), caller_of(session), source, path=path)
