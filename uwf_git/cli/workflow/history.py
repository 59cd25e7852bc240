"""`uwf workflow history`."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.counts import limit_option
from uwf_git.cli.output.render import emit
from uwf_git.cli.output.screen import Painted, screen_of
from uwf_git.cli.output.table import Cell, Column, render_columns, wide_option
from uwf_git.cli.session.settings import Session
from uwf_git.commands.workflow.history import list_history

_MOST_CHANGES = 6
_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
# As many as `git log --oneline` shows of a commit in a large repository.
_SHORT = 12
_COLUMNS = (
    Column("workflow", "WORKFLOW"),
    Column("event", "EVENT", 3),
    Column("when", "WHEN", 2),
    Column("author", "AUTHOR", 4, least=8),
    Column("version", "VERSION", 5),
    Column("what", "WHAT", 1, least=16),
)


@verb(
    "uwf workflow history solve-issue --format text",
    "uwf workflow history solve-issue | jq -r '.[1].workflow'",
    exits={1: "no such workflow ever existed"},
)
@click.argument("name")
@limit_option()
@wide_option
def command(session: Session, *, name: str, limit: int | None, wide: bool) -> None:
    """List the versions of a workflow.

    The newest comes first, with its time, author, reason if given, and the differences from the
    version before. A removal and a rollback are versions of their own; a workflow that was removed
    keeps its history.
    """
    rows = list_history(session.open_store(), name, limit=limit)
    emit(session, rows, text=lambda rows: _table(session, rows, wide=wide))


def _table(session: Session, rows: list[dict[str, Any]], *, wide: bool) -> str:
    screen = screen_of(session)
    cells: list[dict[str, Cell]] = [
        {
            "workflow": row.get("workflow"),
            "event": row.get("event"),
            "when": screen.tell_when(row.get("timestamp")),
            "author": row.get("author"),
            "version": row.get("version", "")[:_SHORT] or None,
            "what": _what(row),
        }
        for row in rows
    ]
    return Painted("\n".join(render_columns(cells, _COLUMNS, screen, wide=wide)))


def _what(row: dict[str, Any]) -> str:
    parts = [row["reason"].replace("\n", " ")] if "reason" in row else []
    if "error" in row:
        parts.append(row["error"])
    elif "restored" in row:
        parts.append(f"again as in {row['restored'][:_SHORT]}")
    elif "changes" in row:
        parts += _changes(row["changes"])
    elif row["before"] is None:
        parts.append("the first version")
    return "; ".join(parts)


def _changes(changes: list[dict[str, str]]) -> list[str]:
    told = [f"{_SIGNS[each['kind']]} {each['path']}" for each in changes[:_MOST_CHANGES]]
    if len(changes) > _MOST_CHANGES:
        told.append(f"and {len(changes) - _MOST_CHANGES} more")
    return [", ".join(told)] if told else []
