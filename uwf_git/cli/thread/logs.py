"""`uwf thread logs`."""

from collections.abc import Iterable
from itertools import chain

import click

from uwf_git.cli.app.failure import INTERRUPTED
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.paging import paged
from uwf_git.cli.output.render import note
from uwf_git.cli.output.table import Count
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import write_stdout
from uwf_git.commands.agent_run.running import refuse_inside
from uwf_git.commands.inspect.logs import LogPiece, LogRequest, find_status, follow_logs, read_logs
from uwf_git.model.text import visible_block, without_colours
from uwf_git.store.threads.heads import resolve_thread


@verb(
    "uwf thread logs 01J7K9M2",
    "uwf thread logs 01J7K9M2 --follow --last 20",
    exits={130: "Ctrl-C ended --follow"},
)
@click.argument("thread")
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Continue with new lines, over all steps, until no process works on the thread.",
)
@click.option(
    "-n",
    "--last",
    type=Count(0),
    metavar="N",
    help="Only the newest N of the existing lines.",
)
def command(session: Session, thread: str, last: int | None, follow: bool) -> None:  # noqa: FBT001 (click passes flags so)
    """Show what was logged while a thread was at work.

    The output of its driver in the background, and the log (standard error) of the running agent.
    Without either, the newest log that a failed attempt or a step keeps; `uwf thread read --logs`
    has all of them. `uwf.keepLogs` says how much of a step's log is kept. Logs of branches are
    shown with those of the thread that has split into them.

    A header on standard error names each source. Keys are masked; terminal controls are escaped.
    """
    store = session.open_store()
    if follow:
        # Its own log would grow by what it prints, for ever.
        refuse_inside(store, resolve_thread(store, thread), session.environ)
    request = LogRequest(thread, last, session.environ)
    try:
        if follow:
            _show(follow_logs(store, request))
            note(f"note: no process works on the thread; it is {find_status(store, thread)}")
        else:
            pieces = (piece for piece in read_logs(store, request) if piece.lines)
            # What is wrong with the thread is said before the pager has the terminal.
            first = next(pieces, None)
            if first is None:
                note("note: nothing is logged")
                return
            with paged(session, store):
                _show(chain([first], pieces))
    except KeyboardInterrupt:
        if not follow:
            raise
        raise click.exceptions.Exit(INTERRUPTED) from None


def _show(pieces: Iterable[LogPiece]) -> None:
    source = None
    for piece in pieces:
        if not piece.lines:
            continue
        if piece.source != source:
            source = piece.source
            note(f"-- {source}")
        text = without_colours("\n".join(piece.lines))
        write_stdout(visible_block(text) + "\n")
