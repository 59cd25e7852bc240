"""`uwf thread run`."""

import click

from uwf_git.cli.app.agent_option import agents_option
from uwf_git.cli.app.verb import verb
from uwf_git.cli.session.settings import Session
from uwf_git.cli.thread.driving import (
    DRIVE_EXITS,
    DriveOptions,
    Driving,
    drive_and_tell,
    drive_options,
)


@verb(
    "uwf thread run 01J7K9M2",
    "uwf thread run 01J7K9M2 --until reviewer",
    "uwf thread run 01J7K9M2 --agent developer=uwf-cursor --agent reviewer=uwf-claude",
    "uwf thread run 01J7K9M2 --max-steps 3 --wait --background",
    exits=DRIVE_EXITS,
)
@click.argument("thread")
@agents_option("The agent of a role, or of every role, for this run; may be repeated.")
@click.option("--workdir", metavar="PATH", help="Where the agents of this thread run from now on.")
@click.option(
    "--max-steps",
    "--max-rounds",
    "max_steps",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop after this many steps of this run; one that was stopped counts as well.",
)
@drive_options
def command(
    session: Session,
    *,
    thread: str,
    agents: tuple[str, ...],
    workdir: str | None,
    max_steps: int | None,
    how: DriveOptions,
) -> None:
    """Drive a thread, step after step, until it stops.

    It stops at the end, at a person's turn, when the thread is paused or killed, when an agent has
    used up its retries, and at a limit. The document says which (`stopped`), and where the thread
    stands. An --agent CMD without a ROLE plays every role but those that the workflow's
    agentOverrides binds to human, uwf-human, uwf-shell or uwf-check.

    No other process can step the thread meanwhile. Ctrl-C ends the running agent, and records its
    output so far; so does closing the terminal, unless it runs in the background. Another run
    continues from there.
    """
    store = session.open_store()
    drive_and_tell(session, store, Driving(thread, how, agents, workdir, max_steps))
