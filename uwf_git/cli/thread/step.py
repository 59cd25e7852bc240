"""`uwf thread step`."""

import click

from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.settings import Session
from uwf_git.cli.thread.stepping import Stepping, check_stepping, step_options, take_step
from uwf_git.cli.verb import verb


@verb(
    "uwf thread step 01J7K9M2XNPQR5VWBCDF8G3H4T",
    'uwf thread step 01J7K9M2 --agent "bunx uwf-cursor"',
    exits={
        1: "no step can be taken now, or its agent may not run here",
        3: "the agent failed; an attempt is recorded, the step can be tried again",
        4: "somebody else is at work on the thread",
    },
)
@click.argument("thread")
@step_options
def command(session: Session, thread: str, stepping: Stepping) -> None:
    """Run one step of a thread.

    The moderator says whose turn it is, that role's agent runs, and its result becomes one
    commit. When the moderator says that it is the end, the thread is archived instead.

    The agent's own log comes on standard error while it runs.
    """
    check_stepping(stepping)
    store = session.open_store()
    take_step(session, store, thread, stepping)
    pack_when_due(session, store)
