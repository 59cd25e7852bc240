"""`uwf thread poke`."""

import click

from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.parameters import text_argument
from uwf_git.cli.settings import Session
from uwf_git.cli.terminal_caller import terminal_caller
from uwf_git.cli.thread.steered import emit_steered, hint_option
from uwf_git.cli.thread.stepping import Stepping, check_stepping, step_options, take_step
from uwf_git.cli.verb import verb
from uwf_git.commands.thread_poke import poke_thread


@verb(
    "uwf thread poke 01J7K9M2 -m 'the review overlooked the tests'",
    "uwf thread poke 01J7K9M2 --agent 'uwf-claude --model opus'",
    exits={
        1: "there is no step to take again, or its agent may not run here",
        3: "the agent failed; the old step is taken back all the same",
        4: "somebody is at work on the thread",
    },
)
@click.argument("thread")
@hint_option
@step_options
@click.option("--no-step", is_flag=True, help="Take the step back only.")
def command(
    session: Session,
    thread: str,
    *,
    message: str,
    stepping: Stepping,
    no_step: bool,
) -> None:
    """Let the newest step of a thread be taken again.

    It is taken back, so that the thread goes on from where it was before, its state as well. The
    old answer stays in the history, and what it cost in the usage; what was changed on disk stays
    as it is.
    """
    hint = text_argument(message, "the message")
    check_stepping(stepping)
    store = session.open_store()
    poked = poke_thread(store, terminal_caller(session), thread, hint=hint)
    if no_step:
        emit_steered(session, poked)
    else:
        take_step(session, store, poked.thread, stepping)
    pack_when_due(session, store)
