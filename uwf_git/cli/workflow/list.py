"""`uwf workflow list`."""

from typing import Any

import click

from uwf_git.cli.render import emit
from uwf_git.cli.render_text import render_text
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.workflow_list import list_workflows

_COLUMNS = ("name", "workflow", "description")


@verb("uwf workflow list", "uwf workflow list --format text")
@click.option("--limit", type=click.IntRange(min=1), help="How many at most.")
def command(session: Session, limit: int | None) -> None:
    """List the registered workflows.

    The one that was put last comes first.
    """
    rows = list_workflows(session.open_store(create=True), limit=limit)
    width = session.text_width()
    emit(session, rows, text=lambda rows: _table(rows, width))


def _table(rows: list[dict[str, Any]], width: int | None) -> str:
    shown = [
        {
            name: row.get(name, row.get("error") if name == "description" else None)
            for name in _COLUMNS
        }
        for row in rows
    ]
    return render_text(shown, width=width)
