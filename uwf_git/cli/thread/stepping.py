"""Stepping: what `step` and `poke` have in common.

Owns: the options that say who plays, and where; taking the step, its log passed on meanwhile.
Knows nothing of: what comes before the step.
"""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, NamedTuple

import click

from uwf_git.cli.agent_log import forwarded_log
from uwf_git.cli.asked_to_end import taken_as_interrupt
from uwf_git.cli.parameters import text_argument
from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.terminal_caller import terminal_caller
from uwf_git.commands.choose_agent import Choice
from uwf_git.commands.play_agent import agent_player
from uwf_git.commands.thread_step import StepRequest, step_thread
from uwf_git.store.store import Store


class Stepping(NamedTuple):
    """Who is to play, and where, as it was typed."""

    agent: str | None
    workdir: str | None
    trust: bool


def step_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the argument ``stepping: Stepping``, from the options of a step."""

    def with_stepping(
        *args: Any, agent: str | None, workdir: str | None, trust: bool, **others: Any
    ) -> Any:
        return function(*args, stepping=Stepping(agent, workdir, trust), **others)

    wrapped: Callable[..., Any] = update_wrapper(with_stepping, function)
    for option in (
        click.option(
            "--trust",
            is_flag=True,
            help="Let the thread's own command run in this store from now on.",
        ),
        click.option(
            "--workdir", metavar="PATH", help="Where the agents of this thread run from now on."
        ),
        click.option("--agent", metavar="[ROLE=]CMD", help="Who plays the role in this step."),
    ):
        wrapped = option(wrapped)
    return wrapped


def check_stepping(stepping: Stepping) -> None:
    """Make sure that what was typed can be content.

    Raises:
        NotText: it cannot.
    """
    if stepping.agent is not None:
        text_argument(stepping.agent, "--agent")


def take_step(session: Session, store: Store, thread: str, stepping: Stepping) -> None:
    """Take the next step of *thread*, and tell it.

    Raises:
        As ``step_thread``.
    """
    with taken_as_interrupt(), forwarded_log() as forward:
        choice = Choice(stepping.agent, session.agent, stepping.trust)
        request = StepRequest(thread, agent_player(forward), choice, stepping.workdir)
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
