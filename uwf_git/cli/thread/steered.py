"""What the verbs that steer a thread share: the document, and the option `-m`."""

from typing import Any

import click

from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.cli.thread.next_line import describe_result, note_next
from uwf_git.commands.turn.turn import ThreadResult
from uwf_git.store.store import Store

reason_option = click.option(
    "-m", "--message", default="", metavar="TEXT", help="The reason, recorded in the log."
)
hint_option = click.option(
    "-m",
    "--message",
    default="",
    metavar="HINT",
    help="A hint for the agent that takes the step, recorded in the log.",
)


def emit_steered(session: Session, store: Store, steered: ThreadResult) -> None:
    """Print a thread after it was steered, and what to type next."""
    document: dict[str, Any] = {
        "workflow": steered.workflow,
        "thread": steered.thread,
        "head": steered.head,
        "status": steered.status,
    }

    def render(_document: dict[str, Any]) -> str:
        return describe_result(session, store, steered)

    emit(session, document, text=render if session.is_screen else None)
    note_next(session, store, steered.thread)
