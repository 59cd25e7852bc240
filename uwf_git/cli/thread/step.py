"""`uwf thread step`, and what `uwf thread poke` shares with it."""

from typing import Any, NamedTuple

import click

from uwf_git.cli.app.follow_up import describe_result, stop_after, tell_stop, view_result
from uwf_git.cli.app.parameters import agents_option, with_options
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import sigterm_as_interrupt, terminal_caller
from uwf_git.cli.output.live import Lines, forwarded_output
from uwf_git.cli.output.screen import Painted, emit, note, without_none
from uwf_git.cli.session import Session
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.family import name_branch
from uwf_git.commands.step.step_thread import BranchStep, StepRequest, check_branches, step_thread
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.commands.turn.turn import Played, ThreadResult, Turn
from uwf_git.model.text import one_line
from uwf_git.store.store import Store

# What `step` and `poke` share: the options of a step, and taking it while forwarding its log.

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=4,
    show_default=True,
    metavar="N",
    help="How many branches of the thread are at work at once.",
)


class Stepping(NamedTuple):
    """The options of a step."""

    agents: tuple[str, ...]
    workdir: str | None
    trust: bool
    jobs: int = 4

    def choose(self, session: Session) -> Choice:
        return Choice(self.agents, session.agent, self.trust)


NOT_GIVEN = Stepping((), None, trust=False)


def _read_stepping(given: dict[str, Any]) -> None:
    fields = {name: given.pop(name) for name in Stepping._fields if name in given}
    given["stepping"] = Stepping(**fields)


_STEP_OPTIONS = (
    agents_option("The agent of this step; may be repeated, and ROLE must be next."),
    click.option(
        "--workdir", metavar="PATH", help="Where the agents of this thread run from now on."
    ),
    click.option(
        "--trust",
        is_flag=True,
        help="Let the thread's own command run in this store from now on.",
    ),
)
step_options = with_options(_read_stepping, *_STEP_OPTIONS)
"""Add the argument ``stepping: Stepping`` to a verb, from the options of a step."""


def take_step(session: Session, store: Store, thread: str, stepping: Stepping) -> None:
    """Take the next step of *thread*, and print its result."""
    lines = Lines()

    def play(turn: Turn) -> Played:
        # Branches are stepped at once; each line of their agents begins with the branch.
        name = name_branch(store, turn.thread)
        with forwarded_output(lines, name=name) as forward:
            played = agent_player(forward.stderr)(turn)
        if played.left_running:
            line = played.describe_left(turn.role)
            note(f"{name}: {line}" if name else line)
        return played

    with sigterm_as_interrupt():
        choice = stepping.choose(session)
        request = StepRequest(thread, play, choice, stepping.workdir, stepping.jobs)
        stepped = step_thread(store, terminal_caller(session), request)
    emit_step(session, store, stepped, is_called=True)


def emit_step(
    session: Session, store: Store, stepped: ThreadResult, *, is_called: bool = False
) -> None:
    """Print a thread after a step, and what to type next."""
    stop = stop_after(session, store, stepped)
    document = view_result(stepped) | {"role": stepped.role, "next": stop.next}
    if stepped.work is not None:
        document["work"] = stepped.work
    if stepped.branches:
        document["branches"] = [_view_branch(each) for each in stepped.branches]

    def render(_document: dict[str, object]) -> str:
        lines = [_describe_branch(session, store, each) for each in stepped.branches]
        return Painted("\n".join([*lines, describe_result(session, store, stepped)]))

    emit(session, document, text=render if session.is_screen else None)
    tell_stop(session, stop, is_called=is_called)
    check_branches(stepped)


def _describe_branch(session: Session, store: Store, branch: BranchStep) -> str:
    if branch.result is not None:
        return describe_result(session, store, branch.result)
    return branch.thread if branch.error is None else one_line(branch.error.message)


def _view_branch(branch: BranchStep) -> dict[str, object]:
    result = branch.result
    if result is None:
        error = None if branch.error is None else branch.error.message
        return without_none({"thread": branch.thread, "error": error})
    names = ("head", "status", "role", "work")
    told = {"thread": branch.thread, **{name: getattr(result, name) for name in names}}
    return without_none(told, "work")


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
@with_options(_read_stepping, *_STEP_OPTIONS, jobs_option)
def step_command(session: Session, thread: str, stepping: Stepping) -> None:
    """Run one step of a thread.

    The moderator chooses the next role, that role's agent runs, and its result becomes one commit.
    If the moderator says END, the thread is archived instead. A step that failed is tried again.
    At a person's turn no agent runs: the thread then waits, and a further step is refused.

    A thread that has split goes on in branches: a step of it steps each of them once, and joins
    them when all have ended. A branch is a thread too, which its own id names alone.

    The agent's log is printed to standard error while it runs.
    """
    store = session.open_store()
    take_step(session, store, thread, stepping)
