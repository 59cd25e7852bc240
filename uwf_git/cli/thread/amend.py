"""`uwf thread amend`."""

from functools import partial
from typing import Any

import click

from uwf_git.cli.app.follow_up import note_next
from uwf_git.cli.app.parameters import (
    INPUT,
    Input,
    agents_option,
    hint_option,
    limit_options,
    reason_option,
    text_argument,
)
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import caller_of, terminal_caller
from uwf_git.cli.output.screen import emit, note
from uwf_git.cli.session import Session
from uwf_git.cli.thread.start import note_left, note_missing
from uwf_git.cli.thread.steer import emit_steered
from uwf_git.cli.thread.step import NOT_GIVEN, Stepping, step_options, take_step
from uwf_git.cli.workflow import is_file
from uwf_git.cli.workflow_put import naming, note_warnings, put_file, read_source, render_unwarned
from uwf_git.commands.control.append import AppendRequest, append_to_thread
from uwf_git.commands.control.change_rules import Amended, AmendRequest, amend_thread, poke_thread
from uwf_git.commands.control.files import poke_with_files
from uwf_git.commands.workflow.build import in_file
from uwf_git.errors import BadUsage
from uwf_git.model.text import visible_line


@verb(
    "uwf thread amend 01J7K9M2 --agent reviewer=uwf-claude -m 'the other one is too kind'",
    """uwf thread amend 01J7K9M2 --agent 'reviewer={"timeout": 600}'""",
    "uwf thread amend 01J7K9M2 --max-steps 40 --max-execution-time 2h",
    "uwf thread amend 01J7K9M2 --max-cost none",
    "uwf thread amend 01J7K9M2 --workflow solve-issue",
    exits={
        1: "the thread is not active, or its role or place is not in that workflow",
        4: "a step is running, so its workflow cannot change",
    },
)
@click.argument("thread")
@click.option(
    "--workflow",
    metavar="WORKFLOW",
    help="The workflow to continue with: a name, a hash, or a YAML file, which is registered "
    "first.",
)
@agents_option(
    "The agent of a role, or of every role, from now on; may be repeated. What it does not name "
    "stays: '{\"timeout\": 60}' keeps the command, and null removes a setting."
)
@limit_options
@reason_option
def command(
    session: Session,
    *,
    thread: str,
    workflow: str | None,
    agents: tuple[str, ...],
    limits: dict[str, Any],
    message: str,
) -> None:
    """Change the workflow, the agents or the limits of a thread.

    Agents and limits change at once; an agent that is running finishes its step first. For another
    workflow the thread must be between two steps, at a role that the workflow has; the thread's own
    agents and limits stay, and new roles are bound as at a start. In a workflow of containers, the
    containers around the thread's place must have the same types in the new workflow, and the node
    that the thread finished last must be at its place there; a thread that has split, or is a
    branch, keeps its workflow. A CMD for every role leaves the roles that are bound, and not as a
    default, to a person or to a check. `none` removes a limit, and so does `--no-max-steps` and the
    like.
    """
    store = session.open_store()
    put = None
    if workflow is not None and is_file(text_argument(workflow, "--workflow")):
        put, workflow = partial(put_file, session, Input(workflow)), None
    request = AmendRequest(thread, workflow, agents, limits, message, session.agent)
    amended = amend_thread(store, caller_of(session), request, put=put)
    note_amended(amended)
    emit(session, amended_document(amended))
    note_next(session, store, amended.thread)


def amended_document(amended: Amended) -> dict[str, Any]:
    """Return the document of a thread with its new rules."""
    return {
        "workflow": amended.workflow,
        "workflowName": amended.name,
        "thread": amended.thread,
        "head": amended.head,
        "status": amended.status,
        "agents": dict(amended.agents),
        "agentSettings": {role: dict(each) for role, each in amended.settings.items()},
        "limits": dict(amended.limits),
    }


def note_amended(amended: Amended) -> None:
    """Print what is still to be done."""
    note_left(amended.left)
    note_missing(amended)
    if amended.unbound:
        note(
            f"note: no agent is bound to {', '.join(amended.unbound)}; give one with "
            f"`uwf thread amend {amended.thread} --agent ROLE=CMD`"
        )


# `uwf thread append`.


@verb(
    "uwf thread append 01J7K9M2 doc-writer.yaml -m 'the API changed, so the docs must'",
    "uwf thread append 01J7K9M2 tests.yaml --to quality-checks",
    exits={
        1: "the file is not valid (each problem has its line), or the thread is not active",
        4: "a step is running",
    },
)
@click.argument("thread")
@click.argument("file", type=INPUT)
@click.option("--to", metavar="ID", help="The container that gets the nodes, by its id or name.")
@reason_option
def append_command(
    session: Session, thread: str, file: Input, to: str | None, message: str
) -> None:
    """Add roles and transitions, or nodes, to one thread.

    FILE is YAML as in a workflow: `roles`, `moderator` (or `graph`) and `agentOverrides`, as
    needed. From a position that the file names, its transitions are tried before the workflow's; a
    transition without a condition always holds, so it replaces those of the workflow. A role of the
    same name is replaced. `!include` works as in a workflow file.

    To a workflow of containers FILE adds nodes: a list of them, or `nodes`, `roles` and
    `agentOverrides`. They run after the root, or at the end of the container of --to, unless the
    thread has left that one for good.

    The result must be valid as a whole. It is a workflow of its own, kept in the thread: the
    registered one stays as it is.
    """
    store = session.open_store()
    source, path = read_source(session, file)
    request = AppendRequest(thread, source, path, message, to, session.agent)
    with naming(file):
        amended = append_to_thread(store, caller_of(session), request)
    warnings = in_file(amended.warnings, file.name)
    note_warnings(warnings)
    note_amended(amended)
    rows = [each.as_document() for each in warnings]
    emit(session, {**amended_document(amended), "warnings": rows}, text=render_unwarned)
    note_next(session, store, amended.thread)


# `uwf thread poke`.


@verb(
    "uwf thread poke 01J7K9M2 -m 'the review overlooked the tests'",
    "uwf thread poke 01J7K9M2 --agent 'uwf-claude --model opus'",
    exits={
        1: "nothing is undone: there is no step to redo, or it cannot be taken again now",
        3: "the agent failed; the old step is undone all the same",
        4: "another process works on the thread",
    },
)
@click.argument("thread")
@hint_option
@step_options
@click.option("--no-step", is_flag=True, help="Only undo the step.")
@click.option("--files", is_flag=True, help="Restore the files as they were before it, too.")
def poke_command(
    session: Session,
    thread: str,
    *,
    message: str,
    stepping: Stepping,
    no_step: bool,
    files: bool,
) -> None:
    """Redo the newest step of a thread.

    The step is undone, so that the thread continues from where it was before, its state as well:
    patches since the step are taken back, too. The old answer stays in the history, and its cost in
    the usage; files on disk are restored only with --files. What branches did is not undone: `uwf
    thread fork` begins a thread before they split.
    """
    if no_step and stepping != NOT_GIVEN:
        raise BadUsage(
            "--agent, --workdir and --trust are for the step, and --no-step takes none",
            code="no-step-to-take",
            hint="leave out --no-step, or give them to `uwf thread step`",
        )
    store, caller = session.open_store(), terminal_caller(session)
    again = stepping.choose(session)._replace(workdir=stepping.workdir)
    retake = None if no_step else again
    if files:
        poked, at = poke_with_files(store, caller, thread, hint=message, retake=retake)
        undo = f"uwf thread restore {at.thread} {at.before}"
        place = visible_line(at.chain.worktree)
        note(f"the files in {place} are as before that step; `{undo}` undoes it")
        for each in at.unlike:
            note(f"not as it was: {each}")
    else:
        poked = poke_thread(store, caller, thread, hint=message, retake=retake)
    if no_step:
        emit_steered(session, store, poked)
    else:
        take_step(session, store, poked.thread, stepping)
