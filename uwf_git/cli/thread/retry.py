"""`uwf thread retry`."""

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.cli.thread.steered import emit_steered, hint_option
from uwf_git.commands.control.steer import retry_thread


@verb(
    "uwf thread retry 01J7K9M2",
    "uwf thread retry 01J7K9M2 -m 'the tests are in spec/, not in tests/'",
    exits={1: "the thread is not active, or has not failed"},
)
@click.argument("thread")
@hint_option
def command(session: Session, thread: str, message: str) -> None:
    """Retry a failed thread.

    Its agent gets all its retries again. This takes no step: `uwf thread step` or `uwf thread run`
    does. The attempts so far stay in the thread; the agent is given the error of the last one, and
    the hint. Of a thread that has split, all branches that have failed are retried.
    """
    hint = text_argument(message, "the message")
    store = session.open_store()
    emit_steered(session, store, retry_thread(store, caller_of(session), thread, hint=hint))
