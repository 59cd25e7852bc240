"""`uwf thread wait`."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.cli.thread.driving import waiting_document
from uwf_git.cli.thread.next_line import note_next
from uwf_git.commands.drive.wait import AtRest, WaitRequest, wait_for_threads

# If threads end differently, the first in this list decides the exit status.
_STATUSES = (("failed", 3), ("killed", 1))


@verb(
    "uwf thread wait 01J7K9M2",
    "uwf thread wait 01J7K9M2 01J7KB4Q --timeout 600",
    exits={
        0: "all have stopped, and none failed or was killed",
        1: "one was killed, does not exist, or waits for this command itself",
        3: "an agent failed, with its retries if it has any; of a branch as well",
        4: "the timeout is over, and one is still running",
    },
)
@click.argument("threads", nargs=-1, required=True, metavar="THREAD...")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="The longest time to wait.  [default: no limit]",
)
def command(session: Session, threads: tuple[str, ...], timeout: float | None) -> None:
    """Wait until no process works on the threads.

    That is when a thread has ended, waits for a person, is paused or has failed, or when it is
    ready and not being driven or stepped. An agent whose engine was killed is a process at work,
    and so is whatever works on a branch of the thread.
    The result has a row for each, in the order in which they stopped; on a timeout, for those that
    did. Of a thread that has split it counts the branches by their status.
    """
    rows: list[AtRest] = []
    store = session.open_store()
    try:
        request = WaitRequest(threads, timeout, session.environ)
        wait_for_threads(store, request, on_rest=rows.append)
    finally:
        if rows:
            emit(session, [_row(row) for row in rows])
        for row in rows:
            note_next(session, store, row.thread, is_called=True)
    # A branch that was killed was given up: its thread goes on.
    ends = {"failed" if "failed" in row.branches else row.status for row in rows}
    for status, exit_status in _STATUSES:
        if status in ends:
            raise click.exceptions.Exit(exit_status)


def _row(rest: AtRest) -> dict[str, Any]:
    row: dict[str, Any] = {
        "workflow": rest.workflow,
        "thread": rest.thread,
        "head": rest.head,
        "status": rest.status,
    }
    if rest.branches:
        row["branches"] = dict(rest.branches)
    waiting = {} if rest.waiting is None else {"waiting": waiting_document(rest.waiting)}
    return row | waiting
