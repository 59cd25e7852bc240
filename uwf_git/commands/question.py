"""Questions: what a thread that waits wants to know, of whom, and since when.

Owns: the document of a question, and its first line for lists.
Knows nothing of: how it is answered (thread_answer.py).
Always true: it says what an agent in that place would be told, for whoever has not seen the thread.
"""

from typing import Any

from uwf_git.commands.check_meta import get_output_schema
from uwf_git.engine.form import list_questions
from uwf_git.engine.subject import describe_step, first_line
from uwf_git.model.node_hash import NodeHash
from uwf_git.model.references import find_reference
from uwf_git.model.thread import CONTROLS, Present
from uwf_git.model.workflow import Role, Workflow, parse_role, parse_workflow
from uwf_git.store.history import walk_history
from uwf_git.store.snapshot import Snapshot
from uwf_git.store.store import Store


def view_waiting(store: Store, snapshot: Snapshot, present: Present) -> dict[str, Any] | None:
    """Give whose turn a thread waits for; None if it waits for nothing.

    With since when and, if an agent hit a limit, until when.

    Raises:
        DamagedCommit, BadMessage: the history is broken where the wait began.
    """
    waiting = present.waiting
    if waiting is None:
        return None
    view: dict[str, Any] = {"role": waiting.role, "since": find_since(store, snapshot)}
    if waiting.until is not None:
        view["until"] = waiting.until
    return view


def find_since(store: Store, snapshot: Snapshot) -> int:
    """Give when the turn at which a thread stands was put, in milliseconds since 1970.

    Whoever steered the thread since has not begun another one.

    Raises:
        DamagedCommit, BadMessage: the history is broken there.
    """
    begun = snapshot
    for each in walk_history(store, snapshot.commit.oid):
        begun = each
        if each.record.event not in CONTROLS:
            break
    return begun.commit.time_s * 1000


def view_question(snapshot: Snapshot, present: Present) -> dict[str, Any] | None:
    """Give what a person is asked; None if the thread waits for nobody.

    Raises:
        MissingNode, DamagedNode, NotAWorkflow: what is asked cannot be read.
    """
    if present.waiting is None or present.waiting.until is not None:
        return None
    name = present.waiting.role
    thread = snapshot.record.thread
    view: dict[str, Any] = {"role": name}
    workflow = parse_workflow(snapshot.get_node(present.workflow))
    role = find_role(snapshot, workflow, name)
    if role is not None:
        schema = get_output_schema(snapshot, workflow, name)
        view |= {
            "description": role.description,
            "systemPrompt": role.system_prompt,
            "extractPrompt": role.extract_prompt,
            "fields": list_questions(schema),
            "outputSchema": schema,
        }
    view["task"] = snapshot.get_start().payload["prompt"]
    view["lastStep"] = _view_newest(snapshot)
    view["command"] = f"uwf thread answer {thread}"
    return view


def tell_question(snapshot: Snapshot, present: Present) -> str | None:
    """Give the first line of what a person is asked; None if the thread waits for nobody.

    Raises:
        MissingNode, DamagedNode, NotAWorkflow: what is asked cannot be read.
    """
    if present.waiting is None or present.waiting.until is not None:
        return None
    workflow = parse_workflow(snapshot.get_node(present.workflow))
    role = find_role(snapshot, workflow, present.waiting.role)
    if role is None:
        return ""
    return first_line(role.system_prompt) or first_line(role.description)


def find_role(snapshot: Snapshot, workflow: Workflow, name: str) -> Role | None:
    """Give the role *name*; None if the workflow has none, as after it was exchanged.

    Raises:
        MissingNode, DamagedNode, NotAWorkflow: it cannot be read.
    """
    node: NodeHash | None = workflow.roles.get(name)
    return None if node is None else parse_role(snapshot.get_node(node))


def _view_newest(snapshot: Snapshot) -> dict[str, Any] | None:
    """Name the newest step, with its own account in a line; `thread show` has all of it."""
    if not snapshot.record.depth:
        return None
    payload = snapshot.get_head_node().payload
    content = find_reference(payload.get("content"))
    text = "" if content is None else str(snapshot.get_node(content).payload)
    return {
        "hash": snapshot.record.node,
        "role": payload["role"],
        "said": describe_step(payload["meta"], text),
    }
