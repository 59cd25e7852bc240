"""`json-cas walk`."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.cas.node_lines import row_document, row_words
from uwf_git.cli.output.render import emit
from uwf_git.cli.output.table import wide_option
from uwf_git.cli.output.text_width import shorten
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas.read import walk_nodes
from uwf_git.errors import StoreDamaged
from uwf_git.model.text import visible_line

# A thread of a thousand steps is a thousand levels deep: no screen is that wide.
_DEEPEST = 20

_Rows = list[dict[str, Any]]


@verb(
    "json-cas walk 8FWKR3TN5V1QA --format text",
    exits={5: "a node on the way is missing or damaged"},
)
@click.argument("node", metavar="HASH")
@wide_option
def command(session: Session, *, node: str, wide: bool) -> None:
    """List every node that can be reached from a node.

    Breadth first, each node once, with its depth and the node that first referred to it. With
    --format text: indented below that node.
    """
    reached = walk_nodes(session.open_store(), node)
    rows = [
        {"depth": each.depth, "parent": each.parent, **row_document(each.node)} for each in reached
    ]
    width = None if wide else session.text_width()
    emit(session, rows, text=lambda rows: "".join(_lines(rows, width)))
    if any(each.node.problem for each in reached):
        raise click.exceptions.Exit(StoreDamaged.exit_status)


def _lines(rows: _Rows, width: int | None) -> Iterator[str]:
    below: dict[str | None, _Rows] = defaultdict(list)
    for row in rows:
        below[row["parent"]].append(row)
    waiting = below[None][::-1]
    while waiting:
        row = waiting.pop()
        line = visible_line(f"{_indent(row['depth'])}{row['hash']}  {row_words(row)}")
        yield f"{line if width is None else shorten(line, width)}\n"
        waiting += reversed(below[row["hash"]])


def _indent(depth: int) -> str:
    return "  " * depth if depth <= _DEEPEST else "  " * _DEEPEST + f"[{depth}] "
