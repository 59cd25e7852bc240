"""`json-cas refs`."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.cas.node_lines import row_document, row_words
from uwf_git.cli.output.render import emit
from uwf_git.cli.output.table import wide_option
from uwf_git.cli.output.text_width import shorten
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas.read import list_references
from uwf_git.errors import StoreDamaged
from uwf_git.model.text import visible_line


@verb("json-cas refs 8FWKR3TN5V1QA", exits={5: "a node among them is missing or damaged"})
@click.argument("node", metavar="HASH")
@wide_option
def command(session: Session, *, node: str, wide: bool) -> None:
    """List the nodes that a node refers to.

    Its type first, then those in its payload, in their order there.
    """
    references = list_references(session.open_store(), node)
    rows = [
        {"as": "type" if each.as_type else "payload", **row_document(each.target)}
        for each in references
    ]
    width = None if wide else session.text_width()
    emit(session, rows, text=lambda rows: "".join(_line(row, width) for row in rows))
    if any(each.target.problem for each in references):
        raise click.exceptions.Exit(StoreDamaged.exit_status)


def _line(row: dict[str, Any], width: int | None) -> str:
    line = visible_line(f"{row['as']:7}  {row['hash']}  {row_words(row)}")
    return f"{line if width is None else shorten(line, width)}\n"
