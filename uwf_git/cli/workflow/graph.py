"""`uwf workflow graph`."""

import os
from typing import Any

import click

from uwf_git.cli.app.parameters import Input
from uwf_git.cli.app.picture import picture_options, print_picture
from uwf_git.cli.app.verb import verb
from uwf_git.cli.session.settings import Session
from uwf_git.cli.workflow.argument import is_file, note_local
from uwf_git.commands.workflow.graph import picture_source, picture_workflow
from uwf_git.engine.picture.plan import Subject


@verb(
    "uwf workflow graph solve-issue",
    "uwf workflow graph ./solve-issue.yaml --as svg -o solve-issue.svg",
    exits={1: "there is no such workflow, its file is not valid, or FILE cannot be written"},
)
@click.argument("workflow")
@picture_options
def graph_command(session: Session, workflow: str, **how: Any) -> None:
    """Draw a workflow.

    WORKFLOW is a name, the hash of any version, or a file, which is not registered. Conditions are
    numbered in the order in which they are asked. An svg has its own colours, light and dark;
    mermaid is what GitHub and GitLab draw in Markdown.
    """
    print_picture(session, _find(session, workflow), **how)


def _find(session: Session, workflow: str) -> Subject:
    if not is_file(workflow):
        store = session.open_store(create=True)
        picture = picture_workflow(store, workflow, cwd=session.cwd)
        found = picture.found
        note_local(found.workflow.name, found.file, found.shadows)
        return picture.subject
    # Reading YAML costs 70 ms of start-up, which a name does not need.
    from uwf_git.cli.workflow.put import (  # noqa: PLC0415 (see above)
        MOST_BYTES,
        find_used_here,
    )

    file = Input(workflow)
    source = file.read_bytes(limit_bytes=MOST_BYTES)
    path = None if file.path == "-" else os.path.join(session.cwd, file.path)
    return picture_source(source, path=path, find_used=find_used_here(session))
