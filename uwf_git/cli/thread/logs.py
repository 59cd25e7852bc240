"""`uwf thread logs`."""

from collections.abc import Iterator

import click

from uwf_git.cli.agent_log import COLOUR
from uwf_git.cli.counts import Count
from uwf_git.cli.failure import INTERRUPTED
from uwf_git.cli.render import note
from uwf_git.cli.settings import Session
from uwf_git.cli.streams import write_stdout
from uwf_git.cli.verb import verb
from uwf_git.cli.visible import visible_block
from uwf_git.commands.thread_logs import (
    LogPiece,
    LogRequest,
    find_status,
    follow_logs,
    read_logs,
)
from uwf_git.engine.masking import find_secrets


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
    help="Go on as it comes, over all steps, until nobody is at work on the thread.",
)
@click.option(
    "-n",
    "--last",
    type=Count(0),
    metavar="N",
    help="Only the newest N lines of what is there already.",
)
def command(session: Session, thread: str, last: int | None, follow: bool) -> None:  # noqa: FBT001 (click passes flags so)
    """Show what was logged while a thread was at work.

    That is what its driver in the background says, and the log (standard error) of the agent
    that is at work. With neither, it is what the last agent that failed had said. What a step
    that succeeded logged is not kept.

    Whose lines follow is told on standard error. Keys are masked; what a terminal would obey is
    spelled out.
    """
    store = session.open_store()
    request = LogRequest(thread, last, find_secrets(session.environ))
    try:
        lines = follow_logs(store, request) if follow else read_logs(store, request)
        is_any = _show(lines)
        if follow:
            note(f"note: nobody is at work on the thread; it is {find_status(store, thread)}")
        elif not is_any:
            note("note: nothing is logged")
    except KeyboardInterrupt:
        if not follow:
            raise
        raise click.exceptions.Exit(INTERRUPTED) from None


def _show(pieces: Iterator[LogPiece]) -> bool:
    """Print *pieces* as they come, and tell whether there was anything in them."""
    source = None
    for piece in pieces:
        if not piece.lines:
            continue
        if piece.source != source:
            source = piece.source
            note(f"-- {source}")
        text = COLOUR.sub("", "\n".join(piece.lines))
        write_stdout(visible_block(text) + "\n")
    return source is not None
