"""`uwf thread kill`."""

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.cli.thread.next_line import describe_result, note_next
from uwf_git.commands.control.steer import kill_thread


@verb(
    "uwf thread kill 01J7K9M2 -m 'the issue was closed'",
    exits={
        1: "the thread is not active",
        4: "its agent, or the process that runs it, cannot be ended from this machine",
    },
)
@click.argument("thread")
@click.option(
    "-m", "--message", default="", metavar="TEXT", help="The reason, recorded in the log."
)
def command(session: Session, thread: str, message: str) -> None:
    """End a thread and archive it.

    A running agent is ended with SIGTERM, and killed if it does not end within seconds; its output
    so far is recorded first. Nothing is deleted: the history stays, at refs/archive/.
    """
    reason = text_argument(message, "the message")
    store = session.open_store()
    killed = kill_thread(store, caller_of(session), thread, reason=reason)
    document = {
        "workflow": killed.workflow,
        "thread": killed.thread,
        "head": killed.head,
        "status": "killed",
    }

    def render(_document: dict[str, str]) -> str:
        return describe_result(session, store, killed)

    emit(session, document, text=render if session.is_screen else None)
    note_next(session, store, killed.thread, is_called=True)
