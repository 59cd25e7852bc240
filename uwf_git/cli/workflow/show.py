"""Verbs that look at workflows: list, show, graph."""

import os
from typing import Any

import click

from uwf_git.cli.app.parameters import Input
from uwf_git.cli.app.picture import picture_options, print_picture
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.output.screen import Painted, Styled, screen_of
from uwf_git.cli.output.table import Cell, Column, limit_option, render_columns, wide_option
from uwf_git.cli.session.settings import Session
from uwf_git.commands.workflow.find import list_all_workflows, list_workflows
from uwf_git.commands.workflow.show import picture_source, picture_workflow, show_workflow
from uwf_git.engine.picture.plan import Subject

# The argument WORKFLOW, which may also be a file.


def name_workflow(session: Session, workflow: str, *, workdir: str | None = None) -> str:
    """Return the name or the hash that *workflow* means; a YAML file is registered first.

    *workdir* is where its agents are to run.
    """
    if not is_file(workflow):
        return workflow
    # Reading YAML costs 70 ms of start-up, which a name does not need.
    from uwf_git.cli.workflow.put import put_file  # noqa: PLC0415 (see above)

    return put_file(session, Input(workflow), workdir=workdir).workflow


def is_file(workflow: str) -> bool:
    """Check for a file: names have no slash, and workflow files end in .yaml."""
    if workflow == "-" or os.sep in workflow:
        return True
    return workflow.endswith((".yaml", ".yml")) and os.path.lexists(workflow)


# The note that a workflow name on the command line means a file of the project.


def note_local(name: str, file: str | None, shadows: str | None) -> None:
    """Note that the workflow *name* is *file*, and which registered one it hides."""
    if file is None:
        return
    if shadows is None:
        note(f"note: workflow {name} is the file {file}")
    else:
        note(f"note: workflow {name} is the file {file}, and not {shadows}, which is registered")


_COLUMNS = (
    Column("name", "NAME"),
    Column("workflow", "WORKFLOW", 3),
    Column("description", "DESCRIPTION", 1, least=20),
    Column("file", "FILE", 4, least=16),
)


@verb("uwf workflow list", "uwf workflow list --all --format text")
@click.option("--all", "with_all", is_flag=True, help="Also those that uwf brings.")
@limit_option()
@wide_option
def list_command(session: Session, *, with_all: bool, limit: int | None, wide: bool) -> None:
    """List the workflows that can be started here.

    First those of the project: the files in .workflows, of the current directory and those above it
    up to the root of the git repository. Then the registered ones, the last put first. Those that
    uwf brings come after them. Each hides the later ones of the same name.
    """
    list_rows = list_all_workflows if with_all else list_workflows
    rows = list_rows(session.open_store(create=True), cwd=session.cwd, limit=limit)
    if not rows and session.output_format == "text":
        note(
            "note: there are no workflows of yours; `uwf workflow list --all` lists what uwf brings"
        )
    emit(session, rows, text=lambda rows: _table(session, rows, wide=wide))


def _table(session: Session, rows: list[dict[str, Any]], *, wide: bool) -> str:
    if not rows:
        return ""
    # Few have a file: the others' paths would be missing in each row.
    columns = [
        each for each in _COLUMNS if each.key != "file" or any("file" in row for row in rows)
    ]
    cells: list[dict[str, Cell]] = [
        {
            "name": row["name"],
            "workflow": row.get("workflow"),
            "description": Styled(f"error: {row['error']}", "red")
            if "error" in row
            else _about(row),
            "file": row.get("file"),
        }
        for row in rows
    ]
    return Painted("\n".join(render_columns(cells, columns, screen_of(session), wide=wide)))


def _about(row: dict[str, Any]) -> Cell:
    """Return the description of a workflow, or its problem, on one line."""
    if "error" in row:
        return Styled(f"error: {row['error']}", "red")
    return " ".join(row["description"].split()) or None


@verb("uwf workflow show solve-issue", "uwf workflow show 4KNM2PXR3B1QW --format yaml")
@click.argument("workflow")
def show_command(session: Session, workflow: str) -> None:
    """Show a workflow.

    WORKFLOW is a name (of a file in .workflows, else the newest version of a registered workflow)
    or the hash of any version.
    """
    document = show_workflow(session.open_store(create=True), workflow, cwd=session.cwd)
    note_local(document["name"], document.get("file"), document.get("shadows"))
    emit(session, document)


@verb(
    "uwf workflow graph solve-issue",
    "uwf workflow graph ./solve-issue.yaml --as svg -o solve-issue.svg",
    exits={1: "there is no such workflow, its file is not valid, or FILE cannot be written"},
)
@click.argument("workflow")
@picture_options
def graph_command(session: Session, workflow: str, form: str, output: str | None) -> None:
    """Draw a workflow.

    WORKFLOW is a name, the hash of any version, or a file, which is not registered. Conditions are
    numbered in the order in which they are asked. An svg has its own colours, light and dark;
    mermaid is what GitHub and GitLab draw in Markdown.
    """
    print_picture(session, _find(session, workflow), form, output)


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
