"""The state of a flow: what results write into it, and what may not be in it.

Rules: FORMAT.md, "State of a flow". Joins are in flow_merge.py.
"""

import json
from collections.abc import Mapping
from typing import Any

from uwf_git.model.canonical import NotCanonical, canonical
from uwf_git.model.merge_patch import merge_patch

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
) -> dict[str, Any]:
    """Return *state* after a result, of an agent or of a workflow that was run.

    In this order: the members of an object *meta* are set, the key *output* is set to the result's
    value, and *patch* (what the reply calls ``state``) is merged.
    """
    members = meta if isinstance(meta, dict) else {}
    set_too = {**state, **members}
    return fold_verdict(set_too, meta=meta, content=content, output=output, patch=patch)


def fold_verdict(
    state: Mapping[str, Any],
    *,
    meta: Any,
    content: str,
    output: str,
    patch: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return *state* after a verdict: as after a result, but its members are not set.

    What a verifier says is about one try, and must not be taken for a word on another one.
    """
    folded = {**state, output: result_value(meta, content)}
    return without_iteration(merge_patch(folded, dict(patch or {})))


def result_value(meta: Any, content: str) -> Any:
    """Return a result as one value: its *meta*, unless that says nothing.

    Then it is *content* as JSON, if it is JSON that a node can hold and no key is there twice; else
    the text.
    """
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
    """Return *state* as it is stored."""
    return {key: value for key, value in state.items() if key != ITERATION}


def find_patch_problem(patch: Any) -> str | None:
    """Return why a person's *patch* of the state is refused, or None."""
    if isinstance(patch, dict) and ITERATION in patch:
        return "iteration is counted by uwf and cannot be patched"
    return None


def find_state_problem(state: Mapping[str, Any]) -> str | None:
    """Return why *state* cannot be stored, or None.

    It may have 1 MiB, as compact JSON in UTF-8, and as many levels as a node.
    """
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
