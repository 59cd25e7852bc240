"""`uwf thread amend`."""

from typing import Any

import click

from uwf_git.cli.app.agent_options import agents_option, limit_options
from uwf_git.cli.app.parameters import text_argument
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.cli.thread.next_line import note_next
from uwf_git.cli.thread.start import note_left
from uwf_git.cli.thread.steer import reason_option
from uwf_git.cli.workflow.argument import name_workflow
from uwf_git.commands.control.change_rules import Amended, AmendRequest, amend_thread


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
    agents and limits stay, and new roles are bound as at a start. With containers, those on the way
    to where it stands must be of the same types, and what it has finished last must be the same
    there; a thread that has split, or is a branch, keeps its workflow. A CMD for every role leaves
    those that the workflow binds to a person or to a check, as at a start. `none` removes a limit,
    and so does `--no-max-steps` and the like.
    """
    reason = text_argument(message, "the message")
    store = session.open_store()
    if workflow is not None:
        workflow = name_workflow(session, text_argument(workflow, "--workflow"))
    request = AmendRequest(thread, workflow, agents, limits, reason, session.agent)
    amended = amend_thread(store, caller_of(session), request)
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
    if amended.unbound:
        note(
            f"note: no agent is bound to {', '.join(amended.unbound)}; give one with "
            f"`uwf thread amend {amended.thread} --agent ROLE=CMD`"
        )
