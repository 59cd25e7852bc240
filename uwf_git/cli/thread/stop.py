"""`uwf thread pause` and `uwf thread kill`."""

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import note
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.cli.thread.steer import emit_steered, reason_option
from uwf_git.commands.control.stop import kill_thread, pause_thread
from uwf_git.store.threads.lock import find_holder


@verb(
    "uwf thread pause 01J7K9M2 -m 'the plan has to be read first'",
    "uwf thread pause 01J7K9M2 --now -m 'it edits the wrong files'",
    exits={
        1: "the thread is not active, or is paused already",
        4: "its agent was stopped, but the process that ran it does not end",
    },
)
@click.argument("thread")
@click.option("--now", is_flag=True, help="End a running agent, and record its output so far.")
@reason_option
def pause_command(
    session: Session,
    thread: str,
    now: bool,  # noqa: FBT001 (click passes flags so)
    message: str,
) -> None:
    """Pause a thread: no further step until it is resumed.

    A step that is running is finished and recorded. With --now its agent is ended with SIGTERM, and
    killed if it does not end within seconds; its output so far is recorded as an interrupted
    attempt, which does not count against its retries. If it returns a result even so, that is
    recorded.
    """
    reason = text_argument(message, "the message")
    store = session.open_store()
    paused = pause_thread(store, caller_of(session), thread, reason=reason, now=now)
    holder = find_holder(store, paused.thread)
    if holder is not None and holder.get("role"):
        note(
            f"note: {holder['role']} is still at work, and its step will be recorded; "
            f"`uwf thread pause {paused.thread} --now` ends it"
        )
    emit_steered(session, store, paused)


@verb(
    "uwf thread kill 01J7K9M2 -m 'the issue was closed'",
    exits={
        1: "the thread is not active",
        4: "its agent, or the process that runs it, cannot be ended from this machine",
    },
)
@click.argument("thread")
@reason_option
def kill_command(session: Session, thread: str, message: str) -> None:
    """End a thread and archive it.

    A running agent is ended with SIGTERM, and killed if it does not end within seconds; its output
    so far is recorded first. Nothing is deleted: the history stays, at refs/archive/.
    """
    reason = text_argument(message, "the message")
    store = session.open_store()
    killed = kill_thread(store, caller_of(session), thread, reason=reason)
    emit_steered(session, store, killed, is_called=True)
