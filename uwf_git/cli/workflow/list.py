"""`uwf workflow list`."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.counts import limit_option
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.output.render_text import render_text
from uwf_git.cli.session.settings import Session
from uwf_git.commands.workflow.list import list_all_workflows, list_workflows

_COLUMNS = ("name", "workflow", "description")


@verb("uwf workflow list", "uwf workflow list --all --format text")
@click.option("--all", "with_all", is_flag=True, help="Also those that uwf brings.")
@limit_option()
def command(session: Session, *, with_all: bool, limit: int | None) -> None:
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
    width = session.text_width()
    emit(session, rows, text=lambda rows: _table(rows, width))


def _table(rows: list[dict[str, Any]], width: int | None) -> str:
    columns = (*_COLUMNS, "file") if any("file" in row for row in rows) else _COLUMNS
    shown = [
        {name: row.get(name) for name in columns} | {"description": _about(row)} for row in rows
    ]
    return render_text(shown, width=width)


def _about(row: dict[str, Any]) -> str | None:
    """Return the description of a workflow, or its problem, on one line."""
    if "error" in row:
        return f"error: {row['error']}"
    return " ".join(row["description"].split()) or None
