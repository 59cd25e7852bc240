"""`uwf thread patch`: change a thread's state by a JSON merge patch.

An agent that is at work does not see the change; its own patch is applied afterwards.
Source: seed 004 (patchState); RFC 7396, JSON merge patch.
"""

from collections.abc import Mapping
from typing import Any

from uwf_git.commands.caller import Caller
from uwf_git.commands.control.steer import build_signalled, steer_thread
from uwf_git.commands.turn.turn import ThreadResult
from uwf_git.engine.flow_state import find_patch_problem, find_state_problem
from uwf_git.errors import BadUsage
from uwf_git.model.event_folds import Cause
from uwf_git.model.merge_patch import merge_patch
from uwf_git.model.thread import build_signal
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.store import Store
from uwf_git.store.threads.record import NewCommit, read_standing
from uwf_git.store.threads.snapshot import Snapshot


def _bad_patch(problem: str) -> BadUsage:
    return BadUsage(
        f"the patch {problem}",
        code="bad-patch",
        hint='a JSON merge patch is an object: \'{"done": true, "draft": null}\' sets done and '
        "removes draft",
    )


def patch_thread(
    store: Store, caller: Caller, text: str, patch: Any, *, reason: str = ""
) -> ThreadResult:
    """Apply the JSON merge patch *patch* to a thread's state.

    Raises:
        BadUsage: *patch* is empty or not an object; in a flow, it names ``iteration`` or makes the
            state too large.
        NotCanonical: *patch* holds a value that a node cannot hold.
        What ``steer_thread`` raises.
    """
    if not isinstance(patch, Mapping):
        raise _bad_patch("is not an object")
    if not patch:
        raise _bad_patch("is empty")

    def build(snapshot: Snapshot) -> NewCommit:
        _check_flow_state(snapshot, patch)
        signal = build_signal("patch", timestamp=caller.now_ms(), reason=reason, patch=patch)
        return build_signalled(read_standing(snapshot), Cause(), signal=signal)

    return steer_thread(store, caller, text, build)


def _check_flow_state(snapshot: Snapshot, patch: Mapping[str, Any]) -> None:
    if parse_workflow(snapshot.get_node(snapshot.record.workflow)).flow is None:
        return
    state = merge_patch(dict(snapshot.get_present().state), dict(patch))
    problem = find_patch_problem(patch) or find_state_problem(state)
    if problem is not None:
        raise _bad_patch(f"cannot be applied: {problem}")
