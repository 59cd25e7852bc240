"""What every process of a turn is given: the agent's and those of the role's checks."""

import os
from collections.abc import Mapping

from uwf_git.commands.turn.turn import Turn
from uwf_git.engine.limits import find_time_left_s


def agent_environ(turn: Turn) -> dict[str, str]:
    """Return the inherited environment with the variables that the agent's settings add."""
    return {**turn.environ, **turn.agent.payload.get("env", {})}


def turn_environment(turn: Turn, environ: Mapping[str, str]) -> dict[str, str]:
    """Return *environ* with what it says of the turn; make the step directory."""
    step_dir = turn.run_dir.step_dir
    os.makedirs(step_dir, exist_ok=True)
    return {
        **environ,
        "UWF_REPO": turn.store.path,
        "UWF_THREAD_ID": turn.thread,
        "UWF_ROLE": turn.role,
        "UWF_HEAD": turn.snapshot.record.node,
        "UWF_ATTEMPT": str(turn.attempt),
        "UWF_WORKFLOW": turn.snapshot.record.workflow,
        "UWF_TRACE": os.path.join(step_dir, "trace.jsonl"),
        "UWF_STEP_DIR": step_dir,
    }


def find_timeout_s(turn: Turn, *, spent_ms: int = 0) -> float | None:
    """Return how long a process may take: the turn's own limit, or what the thread has left.

    *spent_ms* of the thread's time are gone already in this turn.
    """
    left_s = find_time_left_s(turn.limited.present)
    if left_s is not None:
        left_s = max(0.0, left_s - spent_ms / 1000)
    return min((each for each in (turn.timeout_s, left_s) if each is not None), default=None)
