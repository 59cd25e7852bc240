"""What a turn left: what it printed and was given, the files that it changed."""

import os
from collections.abc import Iterable
from functools import partial
from itertools import chain
from typing import Any

import click

from uwf_git.cli.app.failure import INTERRUPTED
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import caller_of
from uwf_git.cli.output.paging import paged
from uwf_git.cli.output.screen import Count, Style, emit, note, screen_of
from uwf_git.cli.session import Session, write_bytes, write_stdout
from uwf_git.commands.agent_run.runs import refuse_inside
from uwf_git.commands.control.files import (
    FilesAt,
    find_files,
    open_files,
    read_patch,
    restore_files,
    take_files,
    view_files,
)
from uwf_git.commands.inspect.context import get_context, get_past_context, render_prompt
from uwf_git.commands.inspect.logs import LogPiece, LogRequest, find_status, follow_logs, read_logs
from uwf_git.commands.start import find_fork_point
from uwf_git.errors import BadUsage
from uwf_git.model.event_folds import describe_files
from uwf_git.model.text import visible_block, visible_line, without_colours
from uwf_git.store.threads.naming import resolve_head, resolve_thread

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


# `uwf thread files`, `uwf thread restore` and `uwf thread take`.

_STYLES: dict[str, Style] = {"+": "green", "-": "red", "@": "cyan"}


@verb(
    "uwf thread files 01J7K9M2 3",
    "uwf thread files 01J7K9M2 3 --patch",
    "uwf thread files 01J7K9M2 3 --into /tmp/as-it-was",
    exits={1: "there is no such thread or step, or no files of it are recorded"},
)
@click.argument("thread")
@click.argument("step", required=False)
@click.option("--patch", is_flag=True, help="What changed, as `git diff` shows it.")
@click.option("--before", is_flag=True, help="With --into: the files before the step.")
@click.option("--into", metavar="PATH", help="Make a work tree at PATH with the files of then.")
def files_command(
    session: Session,
    thread: str,
    step: str | None,
    *,
    patch: bool,
    before: bool,
    into: str | None,
) -> None:
    """Show the files that a step changed.

    STEP is a step's number or hash, or a commit; without it all that changed since the first step
    is meant. Recorded is what is in the project's git repository and not ignored, before and after
    each turn: changes by others meanwhile are shown with those of the agent. Secrets and large
    files are left out, and named. The commits are at `refs/uwf/work/<thread>` of the project.
    """
    if patch and into is not None:
        raise BadUsage(
            "--patch prints what changed, and --into makes a work tree",
            code="patch-and-into",
            hint="give one of the two",
        )
    if before and into is None:
        raise BadUsage("--before is for --into", hint="give the PATH of a work tree: --into PATH")
    store = session.open_store()
    found = find_files(store, session.environ, thread, step, cwd=session.cwd)
    if patch:
        if not session.stdout_is_tty:
            write_bytes(read_patch(found, is_shown=False))
            return
        with paged(session, store) as reader:
            screen = screen_of(reader)
            content = read_patch(found, is_shown=True).decode(errors="backslashreplace")
            lines = visible_block(content).split("\n")
            write_stdout("\n".join(screen.paint(line, _STYLES.get(line[:1])) for line in lines))
        return
    document = view_files(found)
    if into is not None:
        path = os.path.normpath(os.path.join(session.cwd, into))
        document["path"] = open_files(found, found.before if before else found.after, path)
    emit(session, document, text=_text)


@verb(
    "uwf thread restore 01J7K9M2 3",
    "uwf thread restore 01J7K9M2 3 --before",
    exits={
        1: "there is no such thread or step, or no files of it are recorded",
        4: "an agent is at work there, or a file that is in no commit is in the way",
    },
)
@click.argument("thread")
@click.argument("step")
@click.option("--before", is_flag=True, help="As they were before the step.")
def restore_command(session: Session, thread: str, step: str, *, before: bool) -> None:
    """Restore the files of the project as they were after a step.

    What is there now is recorded first, so another restore undoes it; the thread itself stays where
    it is (`uwf thread poke --files` takes its newest step back as well). git's index, HEAD and
    stash are not touched: `git status` shows the restored files as changes. If a file is in the way
    that is in no commit, nothing is changed.
    """
    store = session.open_store()
    _tell(session, restore_files(store, caller_of(session), thread, step, is_before=before))


@verb(
    "uwf thread take 01J7K9M2 01J7KB4Q",
    exits={
        1: "there is no such thread, no files of it are recorded, or the same lines have changed",
        4: "an agent is at work there, or a file that is in no commit is in the way",
    },
)
@click.argument("thread")
@click.argument("other")
def take_command(session: Session, thread: str, other: str) -> None:
    """Take the files of a branch or a fork into the project.

    The files of OTHER, at its newest step, are merged into what is in the project of THREAD. That
    is recorded first, so that a restore undoes it. Where both changed the same lines, these files
    are named, and nothing is changed.
    """
    _tell(session, take_files(session.open_store(), caller_of(session), thread, other))


def _tell(session: Session, restored: FilesAt) -> None:
    emit(session, view_files(restored), text=partial(_text, left_out="not as it was"))
    undo = f"uwf thread restore {restored.thread} {restored.before}"
    # The person may stand in another folder.
    note(f"next: `{undo}` undoes this in {visible_line(restored.chain.worktree)}")


def _text(document: dict[str, Any], *, left_out: str = "left out") -> str:
    changed = document["changed"]
    added, removed = (sum(row[name] or 0 for row in changed) for name in ("added", "removed"))
    counts = {"changed": len(changed), "added": added, "removed": removed}
    lines = [describe_files(counts) if changed else "no file changed"]
    lines += [f"   {_count(row)}  {visible_line(row['path'])}" for row in changed]
    lines += [f"   {left_out}: {each}" for each in document["leftOut"]]
    if "path" in document:
        lines.append(f"work tree: {document['path']}")
    return "\n".join(lines)


def _count(row: dict[str, Any]) -> str:
    if row["added"] is None:
        return f"{'binary':>12}"
    added, removed = f"+{row['added']}", f"-{row['removed']}"
    return f"{added:>6}{removed:>6}"
