"""`uwf thread context`."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.output.table import Count
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import write_stdout
from uwf_git.commands.inspect.context import get_context, get_past_context, render_prompt
from uwf_git.commands.lifecycle.fork import find_fork_point
from uwf_git.errors import BadUsage
from uwf_git.store.threads.heads import get_head, resolve_thread


@verb(
    "uwf thread context 01J7K9M2",
    'uwf --repo "$UWF_REPO" thread context "$UWF_THREAD_ID" --prompt',
    exits={1: "no role has a turn in this thread"},
)
@click.argument("thread")
@click.option("--role", metavar="ROLE", help="As if it were the turn of this role.")
@click.option(
    "--at",
    metavar="STEP",
    help="What the agent of a past step was given: its number or hash, or a commit.",
)
@click.option(
    "--last",
    type=Count(0),
    metavar="N",
    help="Only the newest N steps; those before them are not read.",
)
@click.option("--prompt", is_flag=True, help="Print it as one text, for a model.")
def command(
    session: Session,
    thread: str,
    role: str | None,
    at: str | None,
    last: int | None,
    prompt: bool,  # noqa: FBT001 (click's way)
) -> None:
    """Print the context of the agent whose turn it is, or was.

    The task, the role and the schema of its output, the steps so far with their text, and why the
    last attempt failed; in a workflow of containers also the node, its input, the pass of the loop
    around it, and for a branch the steps before its split. An agent that is not written in Python
    starts from this. Inside an agent the role is $UWF_ROLE.
    """
    if at is not None:
        if role is not None:
            raise BadUsage("--role and --at exclude each other", hint="a past step has its role")
        store = session.open_store()
        head = get_head(store, resolve_thread(store, thread))
        _print(session, get_past_context(store, find_fork_point(store, head, at)), last, prompt)
        return
    environ = session.environ
    if role is None and environ.get("UWF_THREAD_ID") == thread:
        role = environ.get("UWF_ROLE") or None
    _print(session, get_context(session.open_store(), thread, role=role), last, prompt)


def _print(
    session: Session,
    context: dict[str, Any],
    last: int | None,
    prompt: bool,  # noqa: FBT001 (as above)
) -> None:
    if last is not None:
        steps = context["steps"]
        context["steps"] = steps[max(0, len(steps) - last) :]
    if prompt:
        # A model gets the same bytes as from the kit: no format changes them.
        write_stdout(render_prompt(context))
    else:
        emit(session, context)
