"""`uwf thread append`."""

import os

import click

from uwf_git.cli.app.parameters import INPUT, Input, text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.cli.thread.amend import amended_document, note_amended
from uwf_git.cli.thread.next_line import note_next
from uwf_git.cli.thread.steer import reason_option
from uwf_git.cli.workflow.put import MOST_BYTES, note_warnings, render_unwarned
from uwf_git.commands.control.append import AppendRequest, append_to_thread
from uwf_git.commands.workflow.build import in_file


@verb(
    "uwf thread append 01J7K9M2 doc-writer.yaml -m 'the API changed, so the docs must'",
    "uwf thread append 01J7K9M2 tests.yaml --to quality-checks",
    exits={
        1: "the file is not valid (each problem has its line), or the thread is not active",
        4: "a step is running",
    },
)
@click.argument("thread")
@click.argument("file", type=INPUT)
@click.option("--to", metavar="ID", help="The container at whose end they go, by its id or name.")
@reason_option
def command(session: Session, thread: str, file: Input, to: str | None, message: str) -> None:
    """Add roles and transitions, or nodes, to one thread.

    FILE is YAML as in a workflow: `roles`, `moderator` (or `graph`) and `agentOverrides`, as
    needed. From a position that the file names, its transitions are tried before the workflow's;
    one without a condition always holds, so it replaces them. A role of the same name is replaced.
    `!include` works as in a workflow file.

    To a workflow of containers FILE adds nodes: a list of them, or `nodes`, `roles` and
    `agentOverrides`. They run after the root, or at the end of the container of --to, unless the
    thread has left that one for good.

    The result must be valid as a whole. It is a workflow of its own, kept in the thread: the
    registered one stays as it is.
    """
    reason = text_argument(message, "the message")
    store = session.open_store()
    source = file.read_bytes(limit_bytes=MOST_BYTES)
    path = None if file.path == "-" else os.path.join(session.cwd, file.path)
    request = AppendRequest(thread, source, path, reason, to, session.agent)
    amended = append_to_thread(store, caller_of(session), request)
    warnings = in_file(amended.warnings, file.name)
    note_warnings(warnings)
    note_amended(amended)
    rows = [each.as_document() for each in warnings]
    emit(session, {**amended_document(amended), "warnings": rows}, text=render_unwarned)
    note_next(session, store, amended.thread)
