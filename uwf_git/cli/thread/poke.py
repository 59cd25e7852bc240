"""`uwf thread poke`."""

import click

from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import note
from uwf_git.cli.session.caller import terminal_caller
from uwf_git.cli.session.settings import Session
from uwf_git.cli.thread.steer import emit_steered, hint_option
from uwf_git.cli.thread.step import NOT_GIVEN, Stepping, step_options, take_step
from uwf_git.commands.control.poke import poke_thread
from uwf_git.errors import BadUsage


@verb(
    "uwf thread poke 01J7K9M2 -m 'the review overlooked the tests'",
    "uwf thread poke 01J7K9M2 --agent 'uwf-claude --model opus'",
    exits={
        1: "there is no step to redo, or its agent may not run here",
        3: "the agent failed; the old step is undone all the same",
        4: "another process works on the thread",
    },
)
@click.argument("thread")
@hint_option
@step_options
@click.option("--no-step", is_flag=True, help="Only undo the step.")
@click.option("--files", is_flag=True, help="Restore the files as they were before it, too.")
def poke_command(
    session: Session,
    thread: str,
    *,
    message: str,
    stepping: Stepping,
    no_step: bool,
    files: bool,
) -> None:
    """Redo the newest step of a thread.

    The step is undone, so that the thread continues from where it was before, its state as well.
    The old answer stays in the history, and its cost in the usage; files on disk are restored only
    with --files. What branches did is not undone: `uwf thread fork` begins a thread before they
    split.
    """
    hint = text_argument(message, "the message")
    if no_step and stepping != NOT_GIVEN:
        raise BadUsage(
            "--agent, --workdir and --trust are for the step, and --no-step takes none",
            code="no-step-to-take",
            hint="leave out --no-step, or give them to `uwf thread step`",
        )
    store, caller = session.open_store(), terminal_caller(session)
    if files:
        from uwf_git.commands.control.files import restore_files  # noqa: PLC0415 (start-up time)

        undo = restore_files(store, caller, thread, None, is_before=True).before
        note(f"the files are as before that step; `uwf thread restore {thread} {undo}` undoes it")
    poked = poke_thread(store, caller, thread, hint=hint, agents=stepping.agents)
    if no_step:
        emit_steered(session, store, poked)
    else:
        take_step(session, store, poked.thread, stepping)
