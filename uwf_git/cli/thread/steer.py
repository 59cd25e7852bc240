"""Verbs that steer a thread: resume, retry, patch; and what the others share with them."""

from typing import Any

import click

from uwf_git.cli.app.follow_up import describe_result, note_next, view_result
from uwf_git.cli.app.json_argument import read_json_argument, read_json_input
from uwf_git.cli.app.parameters import INPUT, Input, hint_option, reason_option
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import caller_of
from uwf_git.cli.output.screen import emit, note
from uwf_git.cli.session import Session
from uwf_git.commands.control.steer import (
    kill_thread,
    patch_thread,
    pause_thread,
    resume_thread,
    retry_thread,
)
from uwf_git.commands.turn.turn import ThreadResult
from uwf_git.errors import BadUsage
from uwf_git.store.store import Store
from uwf_git.store.threads.lock import find_holder


def emit_steered(
    session: Session, store: Store, steered: ThreadResult, *, is_called: bool = False
) -> None:
    """Print a thread after it was steered, and what to type next (``note_next``)."""
    told = (lambda _: describe_result(session, store, steered)) if session.is_screen else None
    emit(session, view_result(steered), text=told)
    note_next(session, store, steered.thread, is_called=is_called)


@verb(
    "uwf thread resume 01J7K9M2 -m 'the plan is good'",
    exits={1: "the thread is not active, or there is nothing to resume"},
)
@click.argument("thread")
@reason_option
def resume_command(session: Session, thread: str, message: str) -> None:
    """Resume a paused thread.

    It takes no step. A thread that waited, or had failed, when it was paused does so again. One
    that waits for the end of an agent's limit may be tried at once.
    """
    store = session.open_store()
    emit_steered(session, store, resume_thread(store, caller_of(session), thread, reason=message))


@verb(
    "uwf thread retry 01J7K9M2",
    "uwf thread retry 01J7K9M2 -m 'the tests are in spec/, not in tests/'",
    exits={1: "the thread is not active, or has not failed"},
)
@click.argument("thread")
@hint_option
def retry_command(session: Session, thread: str, message: str) -> None:
    """Retry a failed thread.

    Its agent gets all its retries again. This takes no step: `uwf thread step` or `uwf thread run`
    does. The attempts so far stay in the thread; the agent is given the error of the last one, and
    the hint. Of a thread that has split, all branches that have failed are retried.
    """
    store = session.open_store()
    emit_steered(session, store, retry_thread(store, caller_of(session), thread, hint=message))


@verb(
    """uwf thread patch 01J7K9M2 '{"approved": true, "draft": null}' -m 'read by Ann'""",
    "uwf thread patch 01J7K9M2 --file state.json",
    exits={1: "the thread is not active", 2: "it is not JSON, or not an object"},
)
@click.argument("thread")
@click.argument("json", required=False)
@click.option("--file", "file", type=INPUT, help="Read it from a file; `-` is standard input.")
@reason_option
def patch_command(
    session: Session, thread: str, *, json: str | None, file: Input | None, message: str
) -> None:
    """Change the state of a thread by hand.

    JSON is a merge patch (RFC 7396) of the state: its keys are set, null removes, objects are
    merged. A running agent goes on with the state that it began with; its result is merged
    afterwards.
    """
    patch = _read(json, file)
    store = session.open_store()
    emit_steered(
        session, store, patch_thread(store, caller_of(session), thread, patch, reason=message)
    )


def _read(text: str | None, file: Input | None) -> Any:
    if (text is None) == (file is None):
        problem = "missing" if text is None else "given twice, as an argument and by --file"
        raise BadUsage(
            f"the patch is {problem}",
            code="one-patch",
            hint="give it as an argument, or with --file FILE; `-` is standard input",
        )
    return read_json_argument(text or "", "the patch") if file is None else read_json_input(file)


# `uwf thread pause` and `uwf thread kill`.


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
    killed if it has not ended after 5 seconds; its output so far is recorded as an interrupted
    attempt, which does not count against its retries. If it returns a result even so, that is
    recorded.
    """
    store = session.open_store()
    paused = pause_thread(store, caller_of(session), thread, reason=message, now=now)
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

    A running agent is ended with SIGTERM, and killed if it has not ended after 5 seconds; its
    output so far is recorded first. Nothing is deleted: the history stays, at refs/archive/.
    """
    store = session.open_store()
    killed = kill_thread(store, caller_of(session), thread, reason=message)
    emit_steered(session, store, killed, is_called=True)
