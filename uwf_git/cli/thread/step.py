"""`uwf thread step`."""

import click

from uwf_git.cli.agent_log import forwarded_log
from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.parameters import text_argument
from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.terminal_caller import terminal_caller
from uwf_git.cli.verb import verb
from uwf_git.commands.choose_agent import Choice
from uwf_git.commands.play_agent import agent_player
from uwf_git.commands.thread_step import StepRequest, step_thread


@verb(
    "uwf thread step 01J7K9M2XNPQR5VWBCDF8G3H4T",
    'uwf thread step 01J7K9M2 --agent "bunx uwf-cursor"',
    exits={
        1: "the thread is not active, or its agent may not run here",
        3: "the agent failed; an attempt is recorded, the step can be tried again",
        4: "somebody else is at work on the thread",
    },
)
@click.argument("thread")
@click.option("--agent", metavar="[ROLE=]CMD", help="Who plays the role in this step.")
@click.option("--workdir", metavar="PATH", help="Where the agents of this thread run from now on.")
@click.option(
    "--trust", is_flag=True, help="Let the thread's own command run in this store from now on."
)
def command(
    session: Session,
    thread: str,
    agent: str | None,
    workdir: str | None,
    trust: bool,  # noqa: FBT001 (click passes flags so)
) -> None:
    """Run one step of a thread.

    The moderator says whose turn it is, that role's agent runs, and its result becomes one
    commit. When the moderator says that it is the end, the thread is archived instead.

    The agent's own log comes on standard error while it runs.
    """
    if agent is not None:
        text_argument(agent, "--agent")
    store = session.open_store()
    with forwarded_log() as forward:
        request = StepRequest(
            thread, agent_player(forward), Choice(agent, session.agent, trust), workdir
        )
        stepped = step_thread(store, terminal_caller(session), request)
    emit(
        session,
        {
            "workflow": stepped.workflow,
            "thread": stepped.thread,
            "head": stepped.head,
            "status": stepped.status,
            "role": stepped.role,
        },
    )
    pack_when_due(session, store)
