"""`uwf thread logs` and `uwf thread context`: what an agent wrote, and what it was told."""

from collections.abc import Iterable
from itertools import chain

import click

from uwf_git.cli.app.failure import INTERRUPTED
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.paging import paged
from uwf_git.cli.output.screen import emit, note
from uwf_git.cli.output.table import Count
from uwf_git.cli.session import Session, write_stdout
from uwf_git.commands.agent_run.running import refuse_inside
from uwf_git.commands.inspect.context import get_context, get_past_context, render_prompt
from uwf_git.commands.inspect.logs import LogPiece, LogRequest, find_status, follow_logs, read_logs
from uwf_git.commands.lifecycle.fork import find_fork_point
from uwf_git.errors import BadUsage
from uwf_git.model.text import visible_block, without_colours
from uwf_git.store.threads.heads import resolve_head, resolve_thread

# `uwf thread logs`.


@verb(
    "uwf thread logs 01J7K9M2",
    "uwf thread logs 01J7K9M2 --follow --last 20",
    exits={130: "Ctrl-C ended --follow"},
)
@click.argument("thread")
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Continue with new lines, over all steps, until no process works on the thread.",
)
@click.option(
    "-n",
    "--last",
    type=Count(0),
    metavar="N",
    help="Only the newest N of the existing lines.",
)
def command(session: Session, thread: str, last: int | None, follow: bool) -> None:  # noqa: FBT001 (click passes flags so)
    """Show what was logged while a thread was at work.

    The output of its driver in the background, and the log (standard error) of the running agent.
    Without either, the newest log that a failed attempt or a step keeps; `uwf thread read --logs`
    has all of them. `uwf.keepLogs` says how much of a step's log is kept. Logs of branches are
    shown with those of the thread that has split into them.

    A header on standard error names each source. Keys are masked; terminal controls are escaped.
    """
    store = session.open_store()
    if follow:
        # Its own log would grow by what it prints, for ever.
        refuse_inside(store, resolve_thread(store, thread), session.environ)
    request = LogRequest(thread, last, session.environ)
    try:
        if follow:
            _show(follow_logs(store, request))
            note(f"note: no process works on the thread; it is {find_status(store, thread)}")
        else:
            pieces = (piece for piece in read_logs(store, request) if piece.lines)
            # What is wrong with the thread is said before the pager has the terminal.
            first = next(pieces, None)
            if first is None:
                if last != 0:
                    note("note: nothing is logged")
                return
            with paged(session, store):
                _show(chain([first], pieces))
    except KeyboardInterrupt:
        if not follow:
            raise
        raise click.exceptions.Exit(INTERRUPTED) from None


def _show(pieces: Iterable[LogPiece]) -> None:
    source = None
    for piece in pieces:
        if not piece.lines:
            continue
        if piece.source != source:
            source = piece.source
            note(f"-- {source}")
        text = without_colours("\n".join(piece.lines))
        write_stdout(visible_block(text) + "\n")


# `uwf thread context`.


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
def context_command(
    session: Session,
    thread: str,
    role: str | None,
    at: str | None,
    last: int | None,
    prompt: bool,  # noqa: FBT001 (click's way)
) -> None:
    """Print the context of the agent whose turn it is.

    The context is the task, the role and the schema of its output, the steps so far with their
    text, and why the last attempt failed; in a workflow of containers also the node, its input, the
    pass of the loop around it, and for a branch the steps before its split. With --at it is that of
    the agent of a past step; a thread that has ended needs --at.

    An agent that is not written in Python starts from this. Inside an agent the role is $UWF_ROLE.
    """
    if at is not None and role is not None:
        raise BadUsage("--role and --at exclude each other", hint="a past step has its role")
    store, environ = session.open_store(), session.environ
    head = resolve_head(store, thread)
    if role is None and environ.get("UWF_THREAD_ID") == head.thread:
        role = environ.get("UWF_ROLE") or None
    if at is None:
        context = get_context(store, head.thread, role=role)
    else:
        context = get_past_context(store, find_fork_point(store, head, at))
    if last is not None:
        steps = context["steps"]
        context["steps"] = steps[max(0, len(steps) - last) :]
    if prompt:
        # A model gets the same bytes as from the kit: no format changes them.
        write_stdout(render_prompt(context))
    else:
        emit(session, context)
