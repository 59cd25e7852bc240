"""`uwf workflow draft`."""

from collections.abc import Mapping
from typing import Any

import click

from uwf_git.cli.app.follow_up import stop_after, tell_stop
from uwf_git.cli.app.parameters import read_agent_option, read_prompt
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import caller_of
from uwf_git.cli.output.screen import confirm, emit, note
from uwf_git.cli.session import Session, write_stderr
from uwf_git.cli.thread.run import (
    DriveOptions,
    Driving,
    drive_and_tell,
    drive_shown,
    raise_if_failed,
)
from uwf_git.commands.draft import (
    DRAFTER,
    Draft,
    DraftRequest,
    describe_problem,
    draft_stopped,
    read_draft,
    start_draft,
)
from uwf_git.commands.start import StartRequest, start_thread
from uwf_git.commands.turn.choose_agent import find_played
from uwf_git.commands.workflow.build import PutWorkflow, put_workflow
from uwf_git.commands.workflow.find import find_workflow
from uwf_git.errors import AgentFailed, BadUsage, Refused
from uwf_git.model.text import quote_path, visible_block
from uwf_git.store.store import Store
from uwf_git.store.threads.naming import resolve_head

_HOW = DriveOptions()


@verb(
    "uwf workflow draft 'Review each of my notes, then merge them' --agent uwf-claude",
    "uwf workflow draft 'Write a weekly report; I approve it' --yes --run",
    "uwf workflow draft --thread 01J7K9M2 --yes",
    exits={
        1: "the agent has questions, or the drafting was stopped",
        3: "the agent failed, or its last try is no valid workflow",
    },
)
@click.argument("wish", required=False)
@click.option("--agent", metavar="CMD|{…}|@FILE", help="The agent that writes the workflow.")
@click.option("--yes", is_flag=True, help="Put the workflow without asking.")
@click.option("--run", "runs", is_flag=True, help="Run it, with the wish as its task.")
@click.option(
    "--thread", metavar="ID", help="Go on with a drafting thread, or put what it has come to."
)
def command(
    session: Session,
    *,
    wish: str | None,
    agent: str | None,
    yes: bool,
    runs: bool,
    thread: str | None,
) -> None:
    """Have an agent write a workflow for a wish.

    WISH says in plain words what the workflow is to do; `-` reads it from standard input. The agent
    has three tries: each is checked as `uwf workflow validate` does, and gone through with the
    least answers that its schemas allow, so that it is known to end. The problems of one try are
    given to the next.

    A draft names no commands: agents are chosen by whoever runs it. It is shown, and put after a
    yes; without a terminal only with --yes. --agent plays the roles of --run as well, but never
    those of a person.
    """
    agent = None if agent is None else read_agent_option(agent, session.environ)
    store = session.open_store(create=True)
    drafted = _write(session, store, wish, agent, thread)
    put = None
    if not drafted.questions and not drafted.judgement.problems:
        _show(session, drafted, yes=yes)
        if yes or _ask(session, drafted):
            put = put_workflow(store, caller_of(session), drafted.judgement.source.encode())
    if put is not None and runs:
        note(f"put {put.name} {put.workflow}")
        _run(session, store, drafted, put, agent)
        return
    emit(session, _document(drafted, put), text=_text)
    if put is not None:
        file = f"git -C {quote_path(store.path)} show refs/workflows/{put.name}:workflow.yaml"
        note(f"next: `uwf run {put.name} -p …`; to edit it: `{file} > {put.name}.yaml`")
    _raise_if_unfit(drafted)


def _write(
    session: Session, store: Store, wish: str | None, agent: str | None, thread: str | None
) -> Draft:
    has_wish = bool(wish and wish.strip())
    if has_wish == (thread is not None):
        raise BadUsage(
            "there is a wish and a thread" if thread else "there is no wish",
            hint="`uwf workflow draft WISH` begins, `uwf workflow draft --thread ID` goes on",
        )
    again: tuple[str, ...] = ()
    if thread is None:
        request = DraftRequest(read_prompt(wish, None) or "", agent, session.agent)
        new = session.new_thread_id()
        thread = start_draft(store, caller_of(session), request, thread=new).thread
        note(f"thread {thread}")
    elif agent is not None:
        again = (f"{DRAFTER}={agent}",)
    head = resolve_head(store, thread)
    if not head.archived:
        driven = drive_shown(session, store, Driving(head.thread, _HOW, again))
        raise_if_failed(driven)
        if driven.stopped != "end":
            tell_stop(session, stop_after(session, store, driven.last))
            raise draft_stopped(head.thread, driven.last.status)
    return read_draft(store, session.cwd, head.thread)


def _show(session: Session, draft: Draft, *, yes: bool) -> None:
    # As text the file itself is the result, unless it is put.
    if yes or session.output_format != "text" or session.can_ask:
        write_stderr(f"\n{visible_block(draft.judgement.source.rstrip())}\n\n")
    if draft.why:
        note(draft.why)
    roles = draft.judgement.roles
    note(f"with the least answers it ends after {len(roles)} turns: {' → '.join(roles)}")


def _ask(session: Session, draft: Draft) -> bool:
    if session.can_ask and confirm(f"Put {draft.judgement.name}?"):
        return True
    note(f"next: `uwf workflow draft --thread {draft.thread} --yes` puts it")
    return False


def _run(session: Session, store: Store, draft: Draft, put: PutWorkflow, agent: str | None) -> None:
    found = find_workflow(store, put.workflow)
    played = find_played(found.workflow, found.closure)
    # Not those that a person plays, nor those that a workflow in it has agents for.
    free = [role for role in played.roles if role not in played.agent_overrides]
    agents = () if agent is None else tuple(f"{role}={agent}" for role in free)
    request = StartRequest(
        put.workflow,
        draft.wish,
        agents,
        session.agent,
        needs_agents=True,
    )
    started = start_thread(store, caller_of(session), request, thread=session.new_thread_id())
    note(f"thread {started.thread}")
    drive_and_tell(session, store, Driving(started.thread, _HOW))


def _document(draft: Draft, put: PutWorkflow | None) -> Mapping[str, Any]:
    judgement = draft.judgement
    return {
        "thread": draft.thread,
        "name": judgement.name or None,
        "why": draft.why,
        "questions": list(draft.questions),
        "problems": [each.as_document() for each in judgement.problems],
        "roles": list(judgement.roles),
        "file": judgement.source,
        "workflow": None if put is None else put.workflow,
        "version": None if put is None else put.version,
    }


def _text(document: Mapping[str, Any]) -> str:
    if document["workflow"] is None:
        return str(document["file"])
    return f"put {document['name']} {document['workflow']}"


def _raise_if_unfit(draft: Draft) -> None:
    if draft.questions:
        asked = len(draft.questions)
        some = "a question" if asked == 1 else f"{asked} questions"
        raise Refused(
            f"the agent has {some}: {'; '.join(draft.questions)}",
            code="draft-asks",
            hint="answer in the wish, and draft again",
            thread=draft.thread,
            questions=list(draft.questions),
        )
    if draft.judgement.problems:
        problems = draft.judgement.problems
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems, the first"
        raise AgentFailed(
            f"the last draft has {count}: {describe_problem(problems[0])}",
            code="draft-unfit",
            hint=f"`uwf thread read {draft.thread}` shows the tries; say more in the wish, or name "
            "another agent",
            thread=draft.thread,
            problems=[each.as_document() for each in problems],
        )
