"""Signal nodes: what was asked of a thread, with its reason. Who asked is the committer.

Source: seed 004, the runtime control protocol.
"""

from collections.abc import Mapping
from typing import Any, Literal

from uwf_git.model.builtin import SIGNAL
from uwf_git.model.node import Node, build_node
from uwf_git.model.references import find_reference, reference
from uwf_git.model.thread import Amendment

Action = Literal["pause", "resume", "retry", "patch", "amend", "append", "poke"]

LIMITS = ("maxSteps", "maxExecutionTime", "maxTokens", "maxCost")
"""The names of a thread's limits, in steps, milliseconds, tokens and US dollars."""


def keep_reason(text: str) -> str:
    """Return a person's reason as it is recorded: white space alone is none."""
    return text if text.strip() else ""


def build_signal(
    action: Action,
    *,
    timestamp: int,
    reason: str = "",
    patch: Mapping[str, Any] | None = None,
    amendment: Amendment | None = None,
) -> Node:
    """Build a Signal node; empty parts are absent.

    Raises:
        NotCanonical: the patch or the reason holds a value that a node cannot hold.
    """
    payload: dict[str, Any] = {"action": action}
    if keep_reason(reason):
        payload["reason"] = reason
    if patch is not None:
        payload["patch"] = dict(patch)
    if amendment is not None:
        if amendment.workflow is not None:
            payload["workflow"] = reference(amendment.workflow)
        if amendment.binding:
            payload["agentBinding"] = {
                role: reference(agent) for role, agent in amendment.binding.items()
            }
        if amendment.limits:
            payload["limits"] = dict(amendment.limits)
    return build_node(SIGNAL, payload, timestamp=timestamp)


def read_amendment(payload: Mapping[str, Any]) -> Amendment:
    """Return the change of rules that a Signal's payload holds."""
    binding = {
        role: find_reference(agent) for role, agent in payload.get("agentBinding", {}).items()
    }
    return Amendment(
        workflow=find_reference(payload.get("workflow")),
        binding={role: agent for role, agent in binding.items() if agent is not None},
        limits=payload.get("limits", {}),
    )
