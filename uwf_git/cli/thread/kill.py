"""`uwf thread kill`."""

import click

from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.calling import caller_of
from uwf_git.cli.parameters import text_argument
from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.thread_kill import kill_thread


@verb(
    "uwf thread kill 01J7K9M2 -m 'the issue was closed'",
    exits={
        1: "the thread is not active",
        4: "its agent, or the process that runs it, cannot be ended from here",
    },
)
@click.argument("thread")
@click.option("-m", "--message", default="", metavar="TEXT", help="Why; it stands in the log.")
def command(session: Session, thread: str, message: str) -> None:
    """End a thread and archive it.

    An agent that is at work on it is asked to end, and killed if it does not within seconds; what
    it had printed is recorded first. Nothing is deleted: the history stays, at refs/archive/.
    """
    reason = text_argument(message, "the message")
    store = session.open_store()
    killed = kill_thread(store, caller_of(session), thread, reason=reason)
    emit(
        session,
        {
            "workflow": killed.workflow,
            "thread": killed.thread,
            "head": killed.head,
            "status": "killed",
        },
    )
    pack_when_due(session, store)
