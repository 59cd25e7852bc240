"""Draft a workflow from Python: `uwf workflow draft` without its questions."""

from dataclasses import dataclass

from uwf_git.commands.draft import (
    DRAFTER,
    DraftRequest,
    describe_problem,
    draft_stopped,
    read_draft,
    start_draft,
)
from uwf_git.commands.turn.next_move import FUNCTION
from uwf_git.library.handle import TaskHandle
from uwf_git.library.starting import new_task_id
from uwf_git.library.values import OnStep, Place


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDraft:
    """A workflow that an agent wrote; nothing is put."""

    task_id: str
    """The task in which it was written."""

    name: str
    """The name of the workflow; empty if it has problems."""

    file: str
    """The workflow file, which ``TaskRuntime.put`` takes."""

    why: str
    """Why it is as it is, in the agent's words."""

    questions: tuple[str, ...]
    """What the agent has to know first; then *file* is no workflow."""

    problems: tuple[str, ...]
    """What is wrong with the last try, each with its line; do not put a file that has some."""

    roles: tuple[str, ...]
    """The roles that act if each answers the least that its schema allows."""


def write_draft(place: Place, wish: str, agent: str | None, on_step: OnStep | None) -> TaskDraft:
    """Have an agent write a workflow; a player ``drafter`` plays it unless *agent* is given.

    Raises:
        AgentFailed: the agent failed.
        Refused: the task has stopped before its end.
        What ``start_draft`` raises.
    """
    if agent is None and DRAFTER in place.players:
        agent = FUNCTION + DRAFTER
    # A player is no program; without one the first turn says what is missing.
    request = DraftRequest(wish, agent, place.agent, needs_agent=False)
    with place.writing() as store:
        thread = start_draft(store, place.caller, request, thread=new_task_id(place)).thread
    run = TaskHandle(place, thread).run(on_step=on_step)
    if run.stopped == "failed" and run.failure is not None:
        raise run.failure
    if run.stopped != "end":
        raise draft_stopped(thread, run.status)
    draft = read_draft(place.open(), place.cwd, thread)
    return TaskDraft(
        task_id=thread,
        name=draft.judgement.name,
        file=draft.judgement.source,
        why=draft.why,
        questions=draft.questions,
        problems=tuple(map(describe_problem, draft.judgement.problems)),
        roles=draft.judgement.roles,
    )
