"""`uwf thread context`."""

import click

from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.thread_context import get_context


@verb(
    "uwf thread context 01J7K9M2",
    'uwf --repo "$UWF_REPO" thread context "$UWF_THREAD_ID"',
    exits={1: "nobody's turn comes in this thread"},
)
@click.argument("thread")
@click.option("--role", metavar="ROLE", help="As if it were the turn of this role.")
def command(session: Session, thread: str, role: str | None) -> None:
    """Print what the agent whose turn it is may know.

    The task, the role and the schema of its output, the steps so far with their text, and why
    the last attempt failed. An agent that is not written in Python starts from this. Inside an
    agent the role is $UWF_ROLE.
    """
    environ = session.environ
    if role is None and environ.get("UWF_THREAD_ID") == thread:
        role = environ.get("UWF_ROLE") or None
    emit(session, get_context(session.open_store(), thread, role=role))
