"""Verbs on the versions of a workflow: history, rollback, remove."""

from typing import Any

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.output.screen import Painted, screen_of
from uwf_git.cli.output.table import Cell, Column, limit_option, render_columns, wide_option
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.commands.workflow.history import list_history, remove_workflow, rollback_workflow

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
def history_command(session: Session, *, name: str, limit: int | None, wide: bool) -> None:
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


@verb(
    "uwf workflow rollback solve-issue -m 'the new reviewer is too strict'",
    "uwf workflow rollback solve-issue 4KNM2PXR3B1QW",
    exits={1: "there is no such workflow or version, or it is the newest already"},
)
@click.argument("name")
@click.argument("version", metavar="[HASH]", required=False)
@click.option(
    "-m", "--message", default="", metavar="TEXT", help="The reason, recorded in the log."
)
def rollback_command(session: Session, name: str, version: str | None, message: str) -> None:
    """Restore an older version of a workflow.

    HASH is that of the workflow or of the commit, as `uwf workflow history` shows them; without it
    the version before the newest is restored, or, if the workflow was removed, its last one. It is
    a new commit: nothing is rewritten, and a second rollback undoes the first. Threads that run
    keep the version they began with.
    """
    reason = text_argument(message, "the message")
    store = session.open_store()
    done = rollback_workflow(store, caller_of(session), name, text=version, reason=reason)
    emit(
        session,
        {
            "name": done.name,
            "workflow": done.workflow,
            "version": done.version,
            "restored": done.restored,
            "replaced": done.replaced,
        },
    )


@verb(
    "uwf workflow remove solve-issue -m 'solve-bug took its place'",
    exits={1: "there is no such workflow"},
)
@click.argument("name")
@click.option(
    "-m", "--message", default="", metavar="TEXT", help="The reason, recorded in the log."
)
def remove_command(session: Session, name: str, message: str) -> None:
    """Remove a workflow from the registry.

    It is no longer listed, and no thread can be started by its name. Nothing is deleted: its
    history stays, threads that run go on, and `uwf workflow rollback` restores it.
    """
    reason = text_argument(message, "the message")
    store = session.open_store()
    removed = remove_workflow(store, caller_of(session), name, reason=reason)
    emit(
        session,
        {
            "name": removed.name,
            "workflow": removed.workflow,
            "version": removed.version,
            "removed": True,
        },
    )
    note(f"`uwf workflow rollback {removed.name}` brings it back")
