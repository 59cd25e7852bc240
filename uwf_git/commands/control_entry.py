"""Control entries: how it reads that somebody steered a thread.

Owns: the words for each such event, and what of its Signal is shown.
Knows nothing of: the layout (engine/markdown), the events of agents.
"""

from typing import Any

from uwf_git.commands.step_view import Commands
from uwf_git.commands.typed_node import get_typed
from uwf_git.engine.markdown import Entry
from uwf_git.model.builtin import SIGNAL
from uwf_git.model.limit import render_limit
from uwf_git.model.references import find_reference
from uwf_git.store.snapshot import Snapshot

_TITLES = {
    "pause": "Paused",
    "resume": "Resumed",
    "retry": "To be tried again",
    "patch": "State changed by hand",
    "amend": "Rules changed",
    "poke": "Newest step taken back",
    "wait": "Waits for a person",
}

CONTROL_EVENTS = frozenset(_TITLES)
"""The events that are told here."""


def tell_control(
    snapshot: Snapshot, tip: Snapshot, commands: Commands, *, facts: tuple[str, ...]
) -> Entry:
    """Tell what somebody asked of a thread; *tip* holds its nodes, *facts* say when and who.

    Raises:
        MissingNode, DamagedNode: what was asked cannot be read.
    """
    record = snapshot.record
    title = _TITLES[record.event]
    if record.role is not None:
        title = f"{record.role}: {title[0].lower()}{title[1:]}"
    signal = None if record.signal is None else get_typed(tip, record.signal, SIGNAL).payload
    return Entry(
        title=title,
        facts=facts,
        meta=None if signal is None else _view(signal, snapshot, commands),
        text=snapshot.body,
    )


def _view(signal: dict[str, Any], snapshot: Snapshot, commands: Commands) -> dict[str, Any]:
    """Give what changes by a signal, by the names that people type."""
    view: dict[str, Any] = dict(signal.get("patch", {}))
    workflow = find_reference(signal.get("workflow"))
    if workflow is not None:
        view["workflow"] = f"{snapshot.record.workflow_name} {workflow}"
    for role, agent in signal.get("agentBinding", {}).items():
        view[f"agent of {role}"] = commands.get(agent)
    limits = signal.get("limits", {})
    return view | {name: render_limit(name, value) for name, value in limits.items()}
