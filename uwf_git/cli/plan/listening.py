"""The stop server of `uwf plan run` and `uwf plan resume`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click

from uwf_git.cli.output.render import note
from uwf_git.commands.plan.stop_watch import StopWatch
from uwf_git.plan.settings import PlanSettings
from uwf_git.plan.stop_server import ADDRESS, PORT, CannotListen


def port_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``port`` to a verb."""
    return click.option(
        "--port",
        type=click.IntRange(0, 65535),
        metavar="P",
        help=f"Where AI tools tell that they have stopped.  [default: {PORT}, or a free one]",
    )(function)


@contextmanager
def listening(
    settings: PlanSettings, port: int | None, *, elsewhere: bool
) -> Iterator[StopWatch | None]:
    """Listen for stop notices; yield None if that is not possible here, and nobody asked for it.

    If another process is to listen, *elsewhere*, only find out whether it can.

    Raises:
        CannotListen: the address that is set, or the *port* that was typed, is not to be had.
    """
    try:
        watch = StopWatch(settings, port=port)
    except CannotListen as problem:
        if port is not None or settings.address != ADDRESS:
            raise
        note(f"warning: {problem.message}; a tool that never exits has to be ended by hand")
        yield None
        return
    with watch:
        if not elsewhere:
            if not watch.is_local:
                note(
                    f"warning: other machines may reach {settings.address}: a forged stop notice "
                    "can end a program that has left its report"
                )
            yield watch
            return
    yield None
