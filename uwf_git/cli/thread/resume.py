"""`uwf thread resume`."""

import click

from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.calling import caller_of
from uwf_git.cli.parameters import text_argument
from uwf_git.cli.settings import Session
from uwf_git.cli.thread.steered import emit_steered, reason_option
from uwf_git.cli.verb import verb
from uwf_git.commands.thread_resume import resume_thread


@verb(
    "uwf thread resume 01J7K9M2 -m 'the plan is good'",
    exits={1: "the thread is not active, or there is nothing to resume"},
)
@click.argument("thread")
@reason_option
def command(session: Session, thread: str, message: str) -> None:
    """Let a paused thread go on where it was.

    No step is taken by it. A thread that waited, or had failed, when it was paused does so again.
    One that waits for the end of an agent's limit may be tried at once.
    """
    reason = text_argument(message, "the message")
    store = session.open_store()
    emit_steered(session, resume_thread(store, caller_of(session), thread, reason=reason))
    pack_when_due(session, store)
