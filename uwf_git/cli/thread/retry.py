"""`uwf thread retry`."""

import click

from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.calling import caller_of
from uwf_git.cli.parameters import text_argument
from uwf_git.cli.settings import Session
from uwf_git.cli.thread.steered import emit_steered, hint_option
from uwf_git.cli.verb import verb
from uwf_git.commands.thread_retry import retry_thread


@verb(
    "uwf thread retry 01J7K9M2",
    "uwf thread retry 01J7K9M2 -m 'the tests are in spec/, not in tests/'",
    exits={1: "the thread is not active, or has not failed"},
)
@click.argument("thread")
@hint_option
def command(session: Session, thread: str, message: str) -> None:
    """Let a thread that has failed be tried again.

    Its agent has all its retries again. No step is taken by it: `uwf thread step` does that, or
    `uwf thread run`. The tries so far stay in the thread, and the agent is told why the last of
    them failed, and the hint.
    """
    hint = text_argument(message, "the message")
    store = session.open_store()
    emit_steered(session, retry_thread(store, caller_of(session), thread, hint=hint))
    pack_when_due(session, store)
