"""`uwf workflow show` and `uwf workflow list`."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.output.screen import Painted, Styled, screen_of
from uwf_git.cli.output.table import Cell, Column, limit_option, render_columns, wide_option
from uwf_git.cli.session.settings import Session
from uwf_git.cli.workflow.argument import note_local
from uwf_git.commands.workflow.find import list_all_workflows, list_workflows
from uwf_git.commands.workflow.show import show_workflow

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
