"""`uwf workflow show` and `uwf workflow list`."""

import os
from typing import Any

import click

from uwf_git.cli.app.parameters import reason_option
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import caller_of
from uwf_git.cli.output.screen import (
    Cell,
    Column,
    Styled,
    emit,
    limit_option,
    note,
    paint_columns,
    screen_of,
    wide_option,
)
from uwf_git.cli.session import Session
from uwf_git.commands.workflow.find import list_all_workflows, list_workflows
from uwf_git.commands.workflow.history import (
    list_history,
    remove_workflow,
    rollback_workflow,
    show_workflow,
)

# The argument WORKFLOW, which may be a file, and the note that it means one of the project.


def is_file(workflow: str) -> bool:
    """Check for a file: names have no slash, and workflow files end in .yaml."""
    if workflow == "-" or os.sep in workflow:
        return True
    return workflow.endswith((".yaml", ".yml")) and os.path.lexists(workflow)


def note_local(name: str, file: str | None, shadows: str | None) -> None:
    """Note that the workflow *name* is *file*, and which registered one it hides."""
    if file is not None:
        hides = "" if shadows is None else f", and not {shadows}, which is registered"
        note(f"note: workflow {name} is the file {file}{hides}")


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
    up to the root of the git repository. Then the registered ones, the last put first. With --all
    those that uwf brings come last; they can be started without being registered. Each workflow
    hides the later ones of the same name.
    """
    list_rows = list_all_workflows if with_all else list_workflows
    rows = list_rows(session.open_store(create=True), cwd=session.cwd, limit=limit)
    none = "note: there are no workflows of yours; `uwf workflow list --all` lists what uwf brings"
    emit(session, rows, text=lambda rows: _table(session, rows, wide=wide), none=none)


def _table(session: Session, rows: list[dict[str, Any]], *, wide: bool) -> str:
    # Few have a file: the others' paths would be missing in each row.
    columns = [
        each for each in _COLUMNS if each.key != "file" or any("file" in row for row in rows)
    ]
    cells: list[dict[str, Cell]] = [{**row, "description": _about(row)} for row in rows]
    return paint_columns(cells, columns, screen_of(session), wide=wide)


def _about(row: dict[str, Any]) -> Cell:
    if "error" in row:
        return Styled(f"error: {row['error']}", "red")
    return " ".join(row["description"].split()) or None


@verb("uwf workflow show solve-issue", "uwf workflow show 4KNM2PXR3B1QW --format yaml")
@click.argument("workflow")
def show_command(session: Session, workflow: str) -> None:
    """Show a workflow.

    WORKFLOW is the name of a file in .workflows, else of a registered workflow (its newest
    version), else of one that uwf brings; or the hash of any version.
    """
    document = show_workflow(session.open_store(create=True), workflow, cwd=session.cwd)
    note_local(document["name"], document.get("file"), document.get("shadows"))
    emit(session, document)


# Verbs on the versions of a workflow: history, rollback, remove.

_MOST_CHANGES = 6
_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
# As many as `git log --oneline` shows of a commit in a large repository.
_SHORT = 12
_VERSIONS_COLUMNS = (
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
    emit(session, rows, text=lambda rows: _versions_table(session, rows, wide=wide))


def _versions_table(session: Session, rows: list[dict[str, Any]], *, wide: bool) -> str:
    screen = screen_of(session)
    cells: list[dict[str, Cell]] = [
        {
            **row,
            "when": screen.tell_when(row.get("timestamp")),
            "version": row.get("version", "")[:_SHORT] or None,
            "what": _what(row),
        }
        for row in rows
    ]
    return paint_columns(cells, _VERSIONS_COLUMNS, screen, wide=wide)


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
@reason_option
def rollback_command(session: Session, name: str, version: str | None, message: str) -> None:
    """Restore an older version of a workflow.

    HASH names a version: the hash of the workflow, or of its commit, as `uwf workflow history`
    shows them. Without HASH the version before the newest is restored, or, if the workflow was
    removed, its last one. A rollback is a new commit: nothing is rewritten, and a second rollback
    undoes the first. Threads that run keep the version they began with.
    """
    store = session.open_store()
    done = rollback_workflow(store, caller_of(session), name, text=version, reason=message)
    emit(session, done._asdict())


@verb(
    "uwf workflow remove solve-issue -m 'solve-bug took its place'",
    exits={1: "there is no such workflow"},
)
@click.argument("name")
@reason_option
def remove_command(session: Session, name: str, message: str) -> None:
    """Remove a workflow from the registry.

    It is no longer listed, and no thread can be started by its name. Nothing is deleted: its
    history stays, threads that run go on, and `uwf workflow rollback` restores it.
    """
    removed = remove_workflow(session.open_store(), caller_of(session), name, reason=message)
    emit(session, {**removed._asdict(), "removed": True})
    note(f"`uwf workflow rollback {removed.name}` brings it back")
