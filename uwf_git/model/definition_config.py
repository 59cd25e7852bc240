"""The settings of a workflow file: what stands under ``config``.

Owns: their names and values. Knows nothing of: what they do; a thread's own limits come first.
Source: seed 004, "config"; maxSteps, maxTokens and maxCost are ours.
"""

from typing import Any

from uwf_git.model.definition_findings import Findings, Path, describe
from uwf_git.model.limit import find_limit_problem
from uwf_git.model.signal import LIMITS

_SWITCHES = ("eventEmit", "stateSnapshot")


def read_config(findings: Findings, value: Any) -> dict[str, Any] | None:
    """Read ``config``: limits that each thread begins with, and what its events tell.

    None means that there is nothing in it.
    """
    path: Path = ("config",)
    if value is None:
        return None
    fields = findings.read_fields(path, value, (*LIMITS, *_SWITCHES)) or {}
    for name, setting in fields.items():
        problem = _find_problem(name, setting)
        if problem:
            findings.add((*path, name), problem)
    return fields or None


def _find_problem(name: str, setting: Any) -> str | None:
    if name in _SWITCHES:
        return (
            None if isinstance(setting, bool) else f"must be true or false, not {describe(setting)}"
        )
    return find_limit_problem(name, setting)
