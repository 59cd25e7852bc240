"""`uwf thread wait`."""

from typing import Any

import click

from uwf_git.cli.driving import waiting_document
from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.thread_wait import AtRest, WaitRequest, wait_for_threads

# The one that is first here decides, where threads come to different ends.
_STATUSES = (("failed", 3), ("killed", 1))


@verb(
    "uwf thread wait 01J7K9M2",
    "uwf thread wait 01J7K9M2 01J7KB4Q --timeout 600",
    exits={
        0: "each has come to rest, and none of them failed or was killed",
        1: "one was killed, or there is none",
        3: "an agent failed, and its retries are used up",
        4: "the time is over, and one is still at work",
    },
)
@click.argument("threads", nargs=-1, required=True, metavar="THREAD...")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="How long to wait at most.  [default: as long as it takes]",
)
def command(session: Session, threads: tuple[str, ...], timeout: float | None) -> None:
    """Wait until nobody is at work on threads any more.

    That is when a thread has ended, waits for a person, is paused or has failed, or when it is
    ready and nobody drives or steps it. An agent whose engine was killed is at work as well. The
    result has a row for each, in the order in which they came to rest; on a timeout, for those
    that did.
    """
    rows: list[AtRest] = []
    try:
        request = WaitRequest(threads, timeout)
        wait_for_threads(session.open_store(), request, on_rest=rows.append)
    finally:
        if rows:
            emit(session, [_row(row) for row in rows])
    ends = {row.status for row in rows}
    for status, exit_status in _STATUSES:
        if status in ends:
            raise click.exceptions.Exit(exit_status)


def _row(rest: AtRest) -> dict[str, Any]:
    row = {
        "workflow": rest.workflow,
        "thread": rest.thread,
        "head": rest.head,
        "status": rest.status,
    }
    waiting = {} if rest.waiting is None else {"waiting": waiting_document(rest.waiting)}
    return row | waiting
