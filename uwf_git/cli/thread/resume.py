"""`uwf thread resume`."""

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.cli.thread.steered import emit_steered, reason_option
from uwf_git.commands.control.steer import resume_thread


@verb(
    "uwf thread resume 01J7K9M2 -m 'the plan is good'",
    exits={1: "the thread is not active, or there is nothing to resume"},
)
@click.argument("thread")
@reason_option
def command(session: Session, thread: str, message: str) -> None:
    """Resume a paused thread.

    It takes no step. A thread that waited, or had failed, when it was paused does so again. One
    that waits for the end of an agent's limit may be tried at once.
    """
    reason = text_argument(message, "the message")
    store = session.open_store()
    emit_steered(session, store, resume_thread(store, caller_of(session), thread, reason=reason))
