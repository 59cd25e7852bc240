"""The question of a thread that waits for a person: its document, and its first line for lists.

It has what an agent of the role would get, for a reader who has not seen the thread.
"""

from typing import Any

from uwf_git.commands.turn.check_meta import get_output_schema
from uwf_git.engine.form import list_questions
from uwf_git.model.event_rules import CONTROLS
from uwf_git.model.event_words import describe_step, first_line
from uwf_git.model.names import NodeHash
from uwf_git.model.references import find_reference
from uwf_git.model.thread import ThreadState
from uwf_git.model.workflow import Role, Workflow, parse_role, parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.history import walk_history
from uwf_git.store.threads.snapshot import Snapshot


def view_waiting(store: Store, snapshot: Snapshot, present: ThreadState) -> dict[str, Any] | None:
    """Return the role that a thread waits for, since when, and until which limit's end; or None."""
    waiting = present.waiting
    if waiting is None:
        return None
    view: dict[str, Any] = {"role": waiting.role, "since": find_since(store, snapshot)}
    if waiting.until is not None:
        view["until"] = waiting.until
    return view


def find_since(store: Store, snapshot: Snapshot) -> int:
    """Return since when, in ms since 1970, the turn waits; control events do not restart it."""
    begun = snapshot
    for each in walk_history(store, snapshot.commit.oid):
        begun = each
        if each.record.event not in CONTROLS:
            break
    return begun.commit.time_s * 1000


def view_question(snapshot: Snapshot, present: ThreadState) -> dict[str, Any] | None:
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


def first_question_line(snapshot: Snapshot, present: ThreadState) -> str | None:
    if present.waiting is None or present.waiting.until is not None:
        return None
    workflow = parse_workflow(snapshot.get_node(present.workflow))
    role = find_role(snapshot, workflow, present.waiting.role)
    if role is None:
        return ""
    return first_line(role.description) or first_line(role.system_prompt)


def find_role(snapshot: Snapshot, workflow: Workflow, name: str) -> Role | None:
    node: NodeHash | None = workflow.roles.get(name)
    return None if node is None else parse_role(snapshot.get_node(node))


def _view_newest(snapshot: Snapshot) -> dict[str, Any] | None:
    """Return the newest step in one line; `thread show` has the whole step."""
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
