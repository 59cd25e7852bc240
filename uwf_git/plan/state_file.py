"""The state file: a view of the thread for the stop hook and for people. Source: seed 002.

It can be deleted; the next transition, or `uwf plan status`, writes it anew.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

from uwf_git.plan.inside import resolve_inside
from uwf_git.plan.phases import PlanState, build_state_document
from uwf_git.plan.whole_file import keep_out_of_git, read_whole, replace_if_changed

STATE_FILE = ".state/workflow.state.json"


def write_state(
    workdir: str, state: PlanState, where: Mapping[str, Any], *, state_file: str = STATE_FILE
) -> bool:
    """Replace the state file, unless it says the same already; return whether it changed.

    A file behind a link that leads out of *workdir* is left alone.

    Raises:
        OSError: the system refused; the old file is unchanged.
    """
    inside = resolve_inside(workdir, state_file)
    if inside is None:
        return False
    path = os.path.join(workdir, inside)
    text = json.dumps(build_state_document(state, where), indent=2, ensure_ascii=False)
    if os.path.dirname(inside):
        keep_out_of_git(os.path.dirname(path))
    return replace_if_changed(path, text.encode("utf-8", "replace") + b"\n")


def read_state(workdir: str, *, state_file: str = STATE_FILE) -> dict[str, Any]:
    """Return what the state file says; {} if it is not there, or is no such file.

    It is a hint where the thread is, and never the truth.
    """
    try:
        content = read_whole(os.path.join(workdir, state_file)) or b""
        document = json.loads(content.decode("utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
