"""`uwf thread context`."""

import click

from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.streams import write_stdout
from uwf_git.cli.verb import verb
from uwf_git.commands.thread_context import get_context
from uwf_git.commands.thread_prompt import get_prompt


@verb(
    "uwf thread context 01J7K9M2",
    'uwf --repo "$UWF_REPO" thread context "$UWF_THREAD_ID" --prompt',
    exits={1: "nobody's turn comes in this thread"},
)
@click.argument("thread")
@click.option("--role", metavar="ROLE", help="As if it were the turn of this role.")
@click.option("--prompt", is_flag=True, help="All of it as one text, to be given to a model.")
def command(session: Session, thread: str, role: str | None, prompt: bool) -> None:  # noqa: FBT001 (click's way)
    """Print what the agent whose turn it is may know.

    The task, the role and the schema of its output, the steps so far with their text, and why
    the last attempt failed. An agent that is not written in Python starts from this. Inside an
    agent the role is $UWF_ROLE.
    """
    environ = session.environ
    if role is None and environ.get("UWF_THREAD_ID") == thread:
        role = environ.get("UWF_ROLE") or None
    if prompt:
        # A model is told what the kit would tell it, byte for byte: no format changes that.
        write_stdout(get_prompt(session.open_store(), thread, role=role))
        return
    emit(session, get_context(session.open_store(), thread, role=role))
