"""The state of a flow: what results and tries write into it."""

import json
from collections.abc import Mapping
from typing import Any

from uwf_git.model.canonical import NotCanonical, canonical
from uwf_git.model.event_folds import Verdict
from uwf_git.model.flow import Flow, FlowNode, NotAPosition, Position, fits, parse_position
from uwf_git.model.merge_patch import merge_patch
from uwf_git.model.thread import Try

# The state of a flow: what results write into it, and what may not be in it.
#
# Rules: FORMAT.md, "State of a flow". Joins are in flow_merge.py.

ITERATION = "iteration"
"""Set by the engine when something reads the state, and never stored."""

MAX_STATE_BYTES = 1024 * 1024


def fold_result(
    state: Mapping[str, Any],
    *,
    meta: Any,
    content: str,
    output: str,
    patch: Mapping[str, Any] | None = None,
    is_verdict: bool = False,
) -> dict[str, Any]:
    """Return *state* after a result, of an agent or of a workflow that was run.

    In this order: the members of an object *meta* are set, the key *output* is set to the result's
    value, and *patch* (what the reply calls ``state``) is merged. The members of a verdict are not
    set: a verifier speaks about this try only.
    """
    members = meta if isinstance(meta, dict) and not is_verdict else {}
    folded = {**state, **members, output: result_value(meta, content)}
    return without_iteration(merge_patch(folded, dict(patch or {})))


def result_value(meta: Any, content: str) -> Any:
    """Return a result as a value: its *meta* unless empty, else *content*, parsed if JSON."""
    if meta is not None and meta != {}:
        return meta
    try:
        return canonical(json.loads(content, object_pairs_hook=_without_duplicates))
    except (ValueError, RecursionError, NotCanonical):
        return content


def read_state(state: Mapping[str, Any], passes: int) -> dict[str, Any]:
    """Return *state* as conditions, templates and agents read it, with ``iteration``."""
    return {**state, ITERATION: passes}


def without_iteration(state: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in state.items() if key != ITERATION}


def find_patch_problem(patch: Any) -> str | None:
    if isinstance(patch, dict) and ITERATION in patch:
        return "iteration is counted by uwf and cannot be patched"
    return None


def find_state_problem(state: Mapping[str, Any]) -> str | None:
    """Return why *state* is too large (1 MiB of compact JSON) or too deep, or None."""
    try:
        canonical(state)
    except NotCanonical as error:
        return f"the state cannot be stored: {error.message}"
    size = len(json.dumps(state, ensure_ascii=False, separators=(",", ":")).encode())
    if size <= MAX_STATE_BYTES:
        return None
    return f"the state would have {size:,} bytes of JSON, and may have {MAX_STATE_BYTES:,}"


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a key is there twice")
    return fields


# Tries at a node whose work another agent verifies: whose turn it is, what its results change.
#
# Work, checks and verdict are one try. Rules: FORMAT.md, "Tries".

_LONGEST_REASON = 2_000


def find_open_try(
    flow: Flow, tried: Try | None, last: str | None, *, entry: Position | None = None
) -> tuple[str | None, Position | None]:
    """Return the place last finished, and the place of a try that is not over.

    *last* is the place last finished by the thread's own account. If the node is no longer
    verified, work that waits for its verdict is finished.
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
    return fold_result(
        state,
        meta=step["meta"],
        content=content,
        output=node.verdict_output if is_verdict else node.output,
        patch=step.get("state"),
        is_verdict=is_verdict,
    )


def describe_rejection(role: str, meta: Any) -> str:
    """Return why the verifier *role* rejected the work: its issues and its suggestion."""
    reason = find_reason(meta)
    return f"{role} rejected it: {reason}" if reason else f"{role} rejected it"


def find_reason(meta: Any) -> str:
    fields = meta if isinstance(meta, dict) else {}
    told = [*list_issues(fields), find_suggestion(fields)]
    reason = "; ".join(filter(None, told))
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 1]}…"


def list_issues(meta: Mapping[str, Any]) -> list[str]:
    """List the texts of a verdict's ``issues``: a list of texts, or one text."""
    issues = meta.get("issues")
    listed = issues if isinstance(issues, list | tuple) else [issues]
    return [each.strip() for each in listed if isinstance(each, str) and each.strip()]


def find_suggestion(meta: Mapping[str, Any]) -> str:
    """Return a verdict's ``suggestion``; "" if it has none."""
    suggestion = meta.get("suggestion")
    return suggestion.strip() if isinstance(suggestion, str) else ""


# Anybody may push a thread of many verdicts.
_LONGEST_WHEN = 500
_SHARE = 200


def judge_again(flow: Flow, node: FlowNode, meta: Any) -> Verdict:
    """Return what a verdict with *meta* at *node* says, as cheaply as a commit may be checked.

    It is ``unknown`` if ``when`` is long, costs much, reads more than the meta, or is JSONata,
    whose limits are those of a process.
    """
    from uwf_git.engine.javascript.evaluator import evaluate_condition  # noqa: PLC0415 (verify only)
    from uwf_git.engine.javascript.parser import parse_expression  # noqa: PLC0415 (as above)
    from uwf_git.engine.javascript.values import Budget, ExpressionFailed  # noqa: PLC0415 (as above)

    when = str(node.verified_by["when"])
    if flow.language != "javascript" or len(when) > _LONGEST_WHEN:
        return "unknown"
    try:
        expression = parse_expression(when, ("meta",))
        budget = Budget(share=_SHARE)
        is_accepted = evaluate_condition(expression, {"meta": meta}, budget)
    except ExpressionFailed:
        return "unknown"
    return "accepted" if is_accepted else "rejected"
