"""`uwf thread patch`."""

from typing import Any

import click

from uwf_git.cli.app.json_argument import read_json_argument, read_json_input
from uwf_git.cli.app.parameters import INPUT, Input, text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.cli.thread.steered import emit_steered, reason_option
from uwf_git.commands.control.steer import patch_thread
from uwf_git.errors import BadUsage


def _one_patch(problem: str) -> BadUsage:
    return BadUsage(
        f"the patch is {problem}",
        code="one-patch",
        hint="give it as an argument, or with --file FILE; `-` is standard input",
    )


@verb(
    """uwf thread patch 01J7K9M2 '{"approved": true, "draft": null}' -m 'read by Ann'""",
    "uwf thread patch 01J7K9M2 --file state.json",
    exits={1: "the thread is not active", 2: "it is not JSON, or not an object"},
)
@click.argument("thread")
@click.argument("json", required=False)
@click.option("--file", "file", type=INPUT, help="Read it from a file; `-` is standard input.")
@reason_option
def command(
    session: Session, thread: str, *, json: str | None, file: Input | None, message: str
) -> None:
    """Change the state of a thread by hand.

    JSON is a merge patch (RFC 7396) of the state: its keys are set, null removes, objects are
    merged. A running agent goes on with the state that it began with; its result is merged
    afterwards.
    """
    reason = text_argument(message, "the message")
    patch = _read(json, file)
    store = session.open_store()
    emit_steered(
        session, store, patch_thread(store, caller_of(session), thread, patch, reason=reason)
    )


def _read(text: str | None, file: Input | None) -> Any:
    if text is not None and file is not None:
        raise _one_patch("given twice, as an argument and by --file")
    if file is not None:
        return read_json_input(file)
    if text is None:
        raise _one_patch("missing")
    return read_json_argument(text, "the patch")
