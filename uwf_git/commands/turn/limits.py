"""Limits of a thread: choose them at the start, and refuse a step beyond them.

The order: option, workflow, none. How they are counted: engine/limits.py.
"""

from collections.abc import Mapping
from typing import Any

from uwf_git.engine.limits import Spent, find_spent, find_time_left_s
from uwf_git.errors import Refused
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import LIMITS, ThreadState, find_limit_problem

_OPTIONS = {
    "maxSteps": "--max-steps N",
    "maxExecutionTime": "--max-execution-time SECONDS",
    "maxTokens": "--max-tokens N",
    "maxCost": "--max-cost USD",
}


class LimitReached(Refused):
    """The thread has reached one of its limits."""

    code = "limit-reached"

    def __init__(self, thread: ThreadId, spent: Spent) -> None:
        super().__init__(
            f"thread {thread} is at its limit: {spent.told}",
            hint=f"give it more with `uwf thread amend {thread} {_OPTIONS[spent.name]}`, or end it "
            f"with `uwf thread kill {thread}`",
            thread=thread,
            limit=spent.name,
            used=spent.used,
            of=spent.limit,
        )


def _bad_limit(name: str, problem: str) -> Refused:
    return Refused(
        f"{name[:60]} {problem}",
        code="bad-limit",
        hint=f"limits are {', '.join(LIMITS)}; null takes one away",
        limit=name,
    )


def check_asked(asked: Mapping[str, Any]) -> None:
    """Check names and values of limits; None removes one.

    Raises:
        Refused: a name or a value is wrong.
    """
    for name, value in asked.items():
        if name not in LIMITS:
            raise _bad_limit(name, "is no limit")
        problem = None if value is None else find_limit_problem(name, value)
        if problem is not None:
            raise _bad_limit(name, problem)


def choose_limits(asked: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of a new thread: those *asked* for, else those of its workflow's *config*.

    Raises:
        Refused: one is wrong; a workflow from elsewhere may have such.
    """
    given = {name: config[name] for name in LIMITS if name in config}
    merged = {**given, **asked}
    check_asked(merged)
    # In a fixed order, so that equal threads begin with equal nodes.
    return {name: merged[name] for name in LIMITS if merged.get(name) is not None}


def check_limits(thread: ThreadId, present: ThreadState) -> None:
    """Raise ``LimitReached`` if the thread may take no further step."""
    spent = find_spent(present)
    if spent is not None:
        raise LimitReached(thread, spent)


def tell_cut_short(
    thread: ThreadId, present: ThreadState, *, own_s: float | None
) -> tuple[str, str] | None:
    """Return cause and hint if an agent's time was up because of the thread's limit; else None.

    *own_s* is the agent's own time limit.
    """
    left_s = find_time_left_s(present)
    if left_s is None or (own_s is not None and own_s <= left_s):
        return None
    cause = f"it took longer than the {left_s:.1f} s of execution time that the thread had left"
    more = f"`uwf thread amend {thread} {_OPTIONS['maxExecutionTime']}` gives it more"
    return f"{cause}, and was stopped", f"nothing was lost: {more}"
