"""The settings of a workflow file, under ``config`` (seed 004).

maxSteps, maxTokens and maxCost are additions of uwf. A thread's own limits take precedence.
"""

from typing import Any

from uwf_git.model.definition.findings import DocumentPath, Findings, yaml_kind
from uwf_git.model.limit import find_limit_problem
from uwf_git.model.signal import LIMITS

_SWITCHES = ("eventEmit", "stateSnapshot")

SETTINGS = (*LIMITS, *_SWITCHES)
"""The keys of ``config``."""


def read_config(findings: Findings, value: Any) -> dict[str, Any] | None:
    """Read ``config``: limits that each thread begins with, and what its events contain.

    None if it is empty.
    """
    path: DocumentPath = ("config",)
    if value is None:
        return None
    fields = findings.read_fields(path, value, SETTINGS) or {}
    for name, setting in fields.items():
        problem = _find_problem(name, setting)
        if problem:
            findings.add((*path, name), problem)
    return fields or None


def _find_problem(name: str, setting: Any) -> str | None:
    if name in _SWITCHES:
        return (
            None
            if isinstance(setting, bool)
            else f"must be true or false, not {yaml_kind(setting)}"
        )
    return find_limit_problem(name, setting)
