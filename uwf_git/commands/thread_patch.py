"""`uwf thread patch`: the state of a thread is changed by hand.

Owns: that the patch is an object. Knows nothing of: how it was typed.
Always true: an agent that is at work meanwhile does not see it; what it hands in is merged after.
Source: seed 004 (patchState); RFC 7396, JSON merge patch.
"""

from collections.abc import Mapping
from typing import Any

from uwf_git.commands.caller import Caller
from uwf_git.commands.steer import Signalled, Steered, signal_transition, steer_thread
from uwf_git.errors import BadUsage
from uwf_git.model.signal import build_signal
from uwf_git.store.record import Transition
from uwf_git.store.snapshot import Snapshot
from uwf_git.store.store import Store


class BadPatch(BadUsage):
    """The patch changes nothing, or is no object."""

    code = "bad-patch"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"the patch {problem}",
            hint='a JSON merge patch is an object: \'{"done": true, "draft": null}\' sets done and '
            "removes draft",
        )


def patch_thread(
    store: Store, caller: Caller, text: str, patch: Any, *, reason: str = ""
) -> Steered:
    """Change the state of the thread that *text* means by a JSON merge patch.

    Raises:
        BadPatch: it is none.
        NotCanonical: it holds what no node can.
        What ``steer_thread`` raises.
    """
    if not isinstance(patch, Mapping):
        raise BadPatch("is not an object")
    if not patch:
        raise BadPatch("is empty")

    def plan(snapshot: Snapshot) -> Transition:
        signal = build_signal("patch", timestamp=caller.now_ms(), reason=reason, patch=patch)
        present = snapshot.get_present().after_patch(signal.payload["patch"])
        said = f"changed {', '.join(patch)}"
        return signal_transition(
            snapshot, signal, Signalled("patch", snapshot.record.status, said, present)
        )

    return steer_thread(store, caller, text, plan)
