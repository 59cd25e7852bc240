"""Steered: the document of every verb that steers a thread.

Owns: its keys, and the `-m` of those verbs. Knows nothing of: what any of them does.
"""

from typing import Any

import click

from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.commands.steer import Steered

reason_option = click.option(
    "-m", "--message", default="", metavar="TEXT", help="Why; it stands in the log."
)
hint_option = click.option(
    "-m",
    "--message",
    default="",
    metavar="HINT",
    help="What whoever takes the step is told; it stands in the log.",
)


def emit_steered(session: Session, steered: Steered) -> None:
    """Tell a thread after somebody steered it."""
    document: dict[str, Any] = {
        "workflow": steered.workflow,
        "thread": steered.thread,
        "head": steered.head,
        "status": steered.status,
    }
    emit(session, document)
