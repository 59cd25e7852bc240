"""`uwf thread pause`."""

import click

from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.calling import caller_of
from uwf_git.cli.parameters import text_argument
from uwf_git.cli.render import note
from uwf_git.cli.settings import Session
from uwf_git.cli.thread.steered import emit_steered, reason_option
from uwf_git.cli.verb import verb
from uwf_git.commands.thread_pause import pause_thread
from uwf_git.store.thread_lock import find_holder


@verb(
    "uwf thread pause 01J7K9M2 -m 'the plan has to be read first'",
    "uwf thread pause 01J7K9M2 --now -m 'it edits the wrong files'",
    exits={
        1: "the thread is not active, or is paused already",
        4: "its agent was stopped, and the process that ran it does not end",
    },
)
@click.argument("thread")
@click.option(
    "--now", is_flag=True, help="End an agent that is at work, and keep what it has printed."
)
@reason_option
def command(
    session: Session,
    thread: str,
    now: bool,  # noqa: FBT001 (click passes flags so)
    message: str,
) -> None:
    """Let a thread take no further step until it is resumed.

    A step that is under way is finished and recorded. With --now its agent is asked to end, and
    killed if it does not within seconds; what it had printed stands in the thread as a try that
    was interrupted, and does not count against its retries. If it hands in a result even so, that
    is recorded.
    """
    reason = text_argument(message, "the message")
    store = session.open_store()
    paused = pause_thread(store, caller_of(session), thread, reason=reason, now=now)
    holder = find_holder(store, paused.thread)
    if holder is not None and holder.get("role"):
        note(
            f"note: {holder['role']} is at work still, and its step will be recorded; "
            f"`uwf thread pause {paused.thread} --now` ends it"
        )
    emit_steered(session, paused)
    pack_when_due(session, store)
