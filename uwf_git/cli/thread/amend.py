"""`uwf thread amend`."""

from typing import Any

import click

from uwf_git.cli.auto_gc import pack_when_due
from uwf_git.cli.calling import caller_of
from uwf_git.cli.limit_options import limit_options
from uwf_git.cli.parameters import text_argument
from uwf_git.cli.render import emit, note
from uwf_git.cli.settings import Session
from uwf_git.cli.thread.start import text_agents
from uwf_git.cli.thread.steered import reason_option
from uwf_git.cli.verb import verb
from uwf_git.cli.workflow.argument import name_workflow
from uwf_git.commands.change_rules import Amended
from uwf_git.commands.thread_amend import AmendRequest, amend_thread


@verb(
    "uwf thread amend 01J7K9M2 --agent reviewer=uwf-claude -m 'the other one is too kind'",
    "uwf thread amend 01J7K9M2 --max-steps 40 --max-execution-time 2h",
    "uwf thread amend 01J7K9M2 --max-cost none",
    "uwf thread amend 01J7K9M2 --workflow solve-issue",
    exits={
        1: "the thread is not active, or cannot stand in that workflow",
        4: "it is to move to another workflow, and a step is under way",
    },
)
@click.argument("thread")
@click.option(
    "--workflow",
    metavar="WORKFLOW",
    help="The workflow that it goes on with: a name, a hash, or a YAML file, which is registered "
    "first.",
)
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="[ROLE=]CMD",
    help="Who plays a role from now on, or every role; may be given several times.",
)
@limit_options
@reason_option
def command(  # noqa: PLR0913 (one parameter an option, as click wants it)
    session: Session,
    *,
    thread: str,
    workflow: str | None,
    agents: tuple[str, ...],
    limits: dict[str, Any],
    message: str,
) -> None:
    """Change the workflow, the agents or the limits of a thread.

    Agents and limits change at once, also while an agent is at work: that one works on. For
    another workflow the thread must stand between two steps, at a role that is there as well;
    its own agents and limits stay, and what the workflow brings in addition is bound as at a
    start. `none` takes a limit away, and so does `--no-max-steps` and its like.
    """
    reason, typed = text_argument(message, "the message"), text_agents(agents)
    store = session.open_store()
    if workflow is not None:
        workflow = name_workflow(session, text_argument(workflow, "--workflow"))
    request = AmendRequest(thread, workflow, typed, limits, reason, session.agent)
    amended = amend_thread(store, caller_of(session), request)
    note_amended(amended)
    emit(session, amended_document(amended))
    pack_when_due(session, store)


def amended_document(amended: Amended) -> dict[str, Any]:
    """Give a thread as its rules are now."""
    return {
        "workflow": amended.workflow,
        "workflowName": amended.name,
        "thread": amended.thread,
        "head": amended.head,
        "status": amended.status,
        "agents": dict(amended.agents),
        "limits": dict(amended.limits),
    }


def note_amended(amended: Amended) -> None:
    """Tell what is still to be done."""
    if amended.unbound:
        note(
            f"note: no agent is bound to {', '.join(amended.unbound)}; give one with "
            f"`uwf thread amend {amended.thread} --agent ROLE=CMD`"
        )
    if amended.status == "failed":
        note(f"note: it has failed before; `uwf thread retry {amended.thread}` has it try again")
