"""Tries at a node that is verified, as documents: for `thread show`, and for whose turn it is."""

from contextlib import suppress
from typing import Any

from uwf_git.commands.inspect.step_view import find_verdict, get_text
from uwf_git.commands.turn.flow import FlowPlace, fill_work_input
from uwf_git.commands.turn.rules import find_work_retries
from uwf_git.engine.flow_state import find_suggestion, list_issues
from uwf_git.engine.log_lines import find_outputs
from uwf_git.errors import UwfError
from uwf_git.model.node import Node
from uwf_git.model.thread import ThreadState
from uwf_git.store.store import Store
from uwf_git.store.threads.definitions import get_role, get_workflow
from uwf_git.store.threads.snapshot import Snapshot


def view_try(store: Store, place: FlowPlace | None, present: ThreadState) -> dict[str, Any] | None:
    """Return which try the turn at *place* belongs to; None if nobody verifies its work.

    ``of`` is the number of tries, absent if unknown now. A higher number means that all are used
    up.
    """
    if place is None or place.node.verifier is None:
        return None
    tried = _find_try(place, present)
    number = present.begin_tries(str(place.at)).failures + 1 if tried is None else tried.number
    view = {"number": number, "node": place.node.label, "at": str(place.at), "turn": place.role}
    with suppress(UwfError):
        view["of"] = find_work_retries(store.config, place) + 1
    return view


def view_tried(
    store: Store, snapshot: Snapshot, place: FlowPlace, present: ThreadState
) -> dict[str, Any]:
    """Return what the context of a turn at *place* has of its try; empty if it is not verified."""
    view = view_try(store, place, present)
    if view is None:
        return {}
    if place.is_verdict:
        verified = {"role": place.node.agent, "input": fill_work_input(snapshot, present, place)}
        checked = _find_checked(snapshot, present)
        verified |= {"checked": checked} if checked else {}
        return {"try": {**view, "verifies": verified}}
    verdict = find_verdict(snapshot, present)
    return {"try": view if verdict is None else {**view, "rejected": _view(snapshot, verdict)}}


def _find_checked(snapshot: Snapshot, present: ThreadState) -> str:
    """Return what the checks of the work printed that is to be judged: the newest step."""
    work = snapshot.get_head_node()
    role = get_workflow(snapshot, present.workflow).roles.get(work.payload.get("role"))
    checks = () if role is None else get_role(snapshot, role).checks
    return find_outputs(get_text(snapshot, work.payload.get("stderr")), checks) if checks else ""


def _find_try(place: FlowPlace, present: ThreadState) -> Any:
    tried = present.tried
    return tried if tried is not None and tried.at == str(place.at) else None


def _view(snapshot: Snapshot, verdict: Node) -> dict[str, Any]:
    meta = verdict.payload["meta"]
    fields = meta if isinstance(meta, dict) else {}
    return {
        "role": verdict.payload["role"],
        "issues": list_issues(fields),
        "suggestion": find_suggestion(fields),
        "meta": meta,
        "content": get_text(snapshot, verdict.payload.get("content")),
        "hash": verdict.hash,
    }
