"""`uwf plan status`, `uwf plan plans` and `uwf plan clean`."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.output.table import render_text
from uwf_git.cli.plan.directory import directory_option, find_directory, open_project
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.commands.plan.plans import (
    clean_plans,
    list_misnamed_plans,
    read_plan_rows,
    read_plan_status,
)


@verb("uwf plan status", "uwf plan status -d ~/shop --format text")
@directory_option
def status_command(session: Session, directory: str | None) -> None:
    """Show where the plans of a directory stand.

    The phase is idle, planning, executing, completed, failed or waiting_human. The document is that
    of .state/workflow.state.json, which comes back if it was deleted, with the `driver`: the number
    of the process that drives, and the `port` is told only while there is one.
    """
    workdir = find_directory(session, directory)
    store, settings = open_project(session, workdir)
    emit(session, read_plan_status(store, workdir, settings))


@verb("uwf plan plans", "uwf plan plans -d ~/shop --format text")
@directory_option
def plans_command(session: Session, directory: str | None) -> None:
    """List the plan files of a directory, with their status.

    They are docs/plans/NNN-name.md, or lie where uwf.plan.planDir says. A status is pending,
    executing, completed or failed. A plan that nobody carries out has `tracked` false; one whose
    file is gone has `missing` true.
    """
    workdir = find_directory(session, directory)
    store, settings = open_project(session, workdir)
    rows = read_plan_rows(store, workdir, settings)
    width = session.text_width()
    emit(session, rows, text=lambda rows: render_text(list(map(_shown, rows)), width=width))
    for misnamed in list_misnamed_plans(store, workdir, settings):
        note(f"warning: {misnamed}")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    status = row["status"]
    status += ", missing" if row.get("missing") else ""
    status += ", not tracked" if row.get("tracked") is False else ""
    return {"number": row["number"], "name": row["name"], "status": status, "file": row["file"]}


@verb(
    "uwf plan clean",
    "uwf plan clean --all -d ~/shop",
    exits={1: "a folder is behind a link", 4: "an agent is at work"},
)
@directory_option
@click.option("--all", "with_plans", is_flag=True, help="Also remove the plan files.")
def clean_command(session: Session, directory: str | None, *, with_plans: bool) -> None:
    """End the unfinished thread of a directory, and remove its state files.

    The history of the thread stays. No link is followed, and nothing else is removed: not the work,
    and not the session logs.
    """
    workdir = find_directory(session, directory)
    store, settings = open_project(session, workdir)
    caller = caller_of(session)
    emit(session, clean_plans(store, caller, workdir, settings, with_plans=with_plans))
