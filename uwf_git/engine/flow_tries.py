"""Tries at a node whose work another agent verifies: whose turn it is, what its results change.

Work, checks and verdict are one try. Rules: FORMAT.md, "Tries".
"""

from collections.abc import Mapping
from typing import Any

from uwf_git.engine.flow_state import fold_result, fold_verdict
from uwf_git.model.flow import Flow, FlowNode
from uwf_git.model.position import NotAPosition, Position, fits, parse_position
from uwf_git.model.thread import Try

_LONGEST_REASON = 2_000


def find_open_try(
    flow: Flow, tried: Try | None, last: str | None, *, entry: Position | None = None
) -> tuple[str | None, Position | None]:
    """Return the place last finished, and the place of a try that is not over.

    *last* is what the thread says is the place last finished. If the node is no longer verified,
    work that waits for its verdict is finished.
    """
    if tried is None:
        return last, None
    try:
        at = parse_position(tried.at)
    except NotAPosition:
        return last, None
    node = flow.nodes.get(at.place)
    if node is None or node.kind != "agent" or not fits(flow, at, entry=entry):
        return last, None
    if tried.is_verdict and node.verifier is None:
        return tried.at, None
    return last, at


def is_verdict_due(node: FlowNode, tried: Try | None, at: str | None) -> bool:
    """Check whether the next turn at *at*, the place of *node*, is its verifier's."""
    is_there = tried is not None and tried.at == at and tried.is_verdict
    return is_there and node.verifier is not None


def fold_turn(
    node: FlowNode,
    state: Mapping[str, Any],
    step: Mapping[str, Any],
    content: str,
    *,
    is_verdict: bool,
) -> dict[str, Any]:
    """Return *state* after the *step* (its payload), which said *content*, at *node*."""
    meta, patch = step["meta"], step.get("state")
    if is_verdict:
        return fold_verdict(
            state, meta=meta, content=content, output=node.verdict_output, patch=patch
        )
    return fold_result(state, meta=meta, content=content, output=node.output, patch=patch)


def describe_rejection(role: str, meta: Any) -> str:
    """Return why the verifier *role* rejected the work: its issues and its suggestion."""
    fields = meta if isinstance(meta, dict) else {}
    told = [*list_issues(fields), find_suggestion(fields)]
    reason = "; ".join(filter(None, told))
    if len(reason) > _LONGEST_REASON:
        reason = f"{reason[: _LONGEST_REASON - 1]}…"
    return f"{role} rejected it: {reason}" if reason else f"{role} rejected it"


def list_issues(meta: Mapping[str, Any]) -> list[str]:
    """List the texts of a verdict's ``issues``: a list of texts, or one text."""
    issues = meta.get("issues")
    listed = issues if isinstance(issues, list | tuple) else [issues]
    return [each.strip() for each in listed if isinstance(each, str) and each.strip()]


def find_suggestion(meta: Mapping[str, Any]) -> str:
    """Return a verdict's ``suggestion``; "" if it has none."""
    suggestion = meta.get("suggestion")
    return suggestion.strip() if isinstance(suggestion, str) else ""
