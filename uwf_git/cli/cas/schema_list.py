"""`json-cas schema list`."""

from typing import Any

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.counts import limit_option
from uwf_git.cli.output.render import emit
from uwf_git.cli.output.render_text import render_text
from uwf_git.cli.output.table import wide_option
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas.schema import SchemaRow, list_schemas


@verb("json-cas schema list", "json-cas schema list --limit 5 --format text")
@limit_option()
@wide_option
def command(session: Session, *, limit: int | None, wide: bool) -> None:
    """List the schemas.

    The built-in ones, then those that were put by hand, by title. The schemas inside workflows
    are not listed; `uwf workflow show` names them.
    """
    rows = list_schemas(session.open_store(create=True), limit=limit)
    width = None if wide else session.text_width()
    emit(session, [_document(row) for row in rows], text=lambda rows: _table(rows, width))


def _document(row: SchemaRow) -> dict[str, Any]:
    document = {"hash": row.hash, "title": row.title, "builtin": row.builtin}
    return document if row.problem is None else {**document, "problem": row.problem}


def _table(rows: list[dict[str, Any]], width: int | None) -> str:
    shown = [
        {
            "hash": row["hash"],
            "title": row.get("problem", row["title"]),
            "builtin": row["builtin"],
        }
        for row in rows
    ]
    return render_text(shown, width=width)
