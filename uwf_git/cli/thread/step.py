"""`uwf thread step`."""

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.session.settings import Session
from uwf_git.cli.thread.stepping import Stepping, step_jobs_option, step_options, take_step


@verb(
    "uwf thread step 01J7K9M2XNPQR5VWBCDF8G3H4T",
    'uwf thread step 01J7K9M2 --agent "bunx uwf-cursor"',
    exits={
        1: "no step can be taken now, or its agent may not run here",
        3: "the agent failed; an attempt is recorded, the step can be tried again",
        4: "another process works on the thread",
    },
)
@click.argument("thread")
@step_options
@step_jobs_option
def command(session: Session, thread: str, stepping: Stepping) -> None:
    """Run one step of a thread.

    The moderator chooses the next role, that role's agent runs, and its result becomes one commit.
    If the moderator says END, the thread is archived instead. A step that failed is tried again.

    A thread that has split goes on in branches: a step of it steps each of them once, and joins
    them when all have ended. A branch is a thread too, which its own id names alone.

    The agent's log is printed to standard error while it runs.
    """
    store = session.open_store()
    take_step(session, store, thread, stepping)
