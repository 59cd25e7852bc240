"""`uwf thread list`."""

from typing import Any

import click

from uwf_git.cli.render import emit, note
from uwf_git.cli.render_text import render_text
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.thread_list import DAMAGED, ListRequest, list_rows
from uwf_git.model.thread import STATUSES

_DEFAULT_LIMIT = 50
_COLUMNS = ("thread", "status", "workflowName", "depth", "said")


@verb(
    "uwf thread list",
    "uwf thread list --all --workflow solve-issue --status completed --limit 10",
)
@click.option("--all", "archived", is_flag=True, help="The archived ones as well.")
@click.option("--workflow", metavar="NAME", help="Only threads of this workflow (name or hash).")
@click.option(
    "--status", type=click.Choice([*STATUSES, DAMAGED]), help="Only threads with this status."
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=_DEFAULT_LIMIT,
    show_default=True,
    help="How many at most.",
)
def command(
    session: Session,
    archived: bool,  # noqa: FBT001 (click passes flags so)
    workflow: str | None,
    status: str | None,
    limit: int,
) -> None:
    """List the threads.

    The newest first. A status of ended threads (completed, killed) needs --all.
    """
    # One more than is shown, to know whether there are more.
    request = ListRequest(archived, workflow, status, limit + 1)
    rows = list_rows(session.open_store(create=True), request)
    if len(rows) > limit:
        rows = rows[:limit]
        note(f"note: there are more than {limit}; see them with --limit N")
    width = session.text_width()
    emit(session, rows, text=lambda rows: _table(rows, width))


def _table(rows: list[dict[str, Any]], width: int | None) -> str:
    shown = [
        {name: row.get(name, row.get("error") if name == "said" else None) for name in _COLUMNS}
        for row in rows
    ]
    return render_text(shown, width=width)
