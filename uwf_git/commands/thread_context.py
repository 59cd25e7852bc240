"""`uwf thread context`: everything that an agent may know of its turn.

Owns: the document that agents in any language read; the kit reads it too.
Always true: it says no more than the thread does, and no less than a role needs.
Source: seed 003's AgentContext; DESIGN 6.1.
"""

from typing import Any

from uwf_git.commands.check_meta import get_output_schema
from uwf_git.commands.decide import decide_next
from uwf_git.commands.step_view import view_error, view_steps
from uwf_git.commands.thread_errors import ThreadNotActive
from uwf_git.errors import Refused
from uwf_git.model.thread import Present
from uwf_git.model.transition import END
from uwf_git.model.workflow import Workflow, parse_role, parse_workflow
from uwf_git.store.heads import get_head, resolve_thread
from uwf_git.store.snapshot import Snapshot, read_snapshot
from uwf_git.store.store import Store, open_store
from uwf_git.store.workdirs import find_workdir


class NotItsTurn(Refused):
    """The role is not one of the workflow's, or the workflow is at its end."""

    code = "not-its-turn"

    def __init__(self, thread: str, problem: str, hint: str) -> None:
        super().__init__(f"thread {thread} {problem}", hint=hint, thread=thread)


def load_thread_context(repo: str, thread: str, *, role: str | None = None) -> dict[str, Any]:
    """Open the store at *repo* and give the context of a thread's turn, for an agent's kit.

    Raises:
        As ``get_context``; NotAStore: there is no store at *repo*.
    """
    return get_context(open_store(repo), thread, role=role)


def get_context(store: Store, text: str, *, role: str | None = None) -> dict[str, Any]:
    """Give the context in which *role* (None is whose turn it is) would play now.

    Raises:
        NoSuchThread, AmbiguousThread, NotAThreadId: no thread is meant.
        ThreadNotActive, NotItsTurn: nobody's turn comes.
    """
    head = get_head(store, resolve_thread(store, text))
    snapshot = read_snapshot(store, head.commit)
    if head.archived:
        raise ThreadNotActive(snapshot)
    present = snapshot.get_present()
    workflow = parse_workflow(snapshot.get_node(present.workflow))
    role = role or decide_next(snapshot, present, workflow)
    _check_role(snapshot, workflow, role)
    start = snapshot.get_start()
    document: dict[str, Any] = {
        "thread": head.thread,
        "workflow": {
            "hash": workflow.hash,
            "name": workflow.name,
            "description": workflow.description,
        },
        "role": _view_role(snapshot, workflow, role),
        "start": {
            "hash": start.hash,
            "prompt": start.payload["prompt"],
            "timestamp": start.timestamp,
        },
        "steps": view_steps(snapshot),
        "head": snapshot.record.node,
        "depth": snapshot.record.depth,
        "visit": present.visits.get(role, 0) + 1,
        "attempt": present.attempts + 1,
        "lastError": _last_error(snapshot, present),
        "state": dict(present.state),
        "hint": present.hint or None,
        "workdir": find_workdir(store, head.thread),
    }
    return document


def _check_role(snapshot: Snapshot, workflow: Workflow, role: str) -> None:
    thread = snapshot.record.thread
    if role == END:
        raise NotItsTurn(thread, "has no turn left", f"`uwf thread step {thread}` ends it")
    if role not in workflow.roles:
        raise NotItsTurn(
            thread, f"has no role {role}", f"its roles are {', '.join(workflow.roles)}"
        )


def _view_role(snapshot: Snapshot, workflow: Workflow, name: str) -> dict[str, Any]:
    role = parse_role(snapshot.get_node(workflow.roles[name]))
    view: dict[str, Any] = {
        "name": name,
        "description": role.description,
        "systemPrompt": role.system_prompt,
    }
    if role.extract_prompt is not None:
        view["extractPrompt"] = role.extract_prompt
    view["outputSchema"] = get_output_schema(snapshot, workflow, name)
    return view


def _last_error(snapshot: Snapshot, present: Present) -> dict[str, Any] | None:
    return view_error(snapshot, present.last_attempt)
