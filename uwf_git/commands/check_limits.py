"""Limits of a thread: which are set, and that no step goes beyond them.

Owns: the order option, workflow, none; and the refusal of a step before it begins.
Knows nothing of: command lines, how limits are counted (engine/limits.py).
"""

from collections.abc import Mapping
from typing import Any

from uwf_git.engine.limits import Spent, find_spent, find_time_left_s
from uwf_git.errors import Refused
from uwf_git.model.limit import find_limit_problem
from uwf_git.model.signal import LIMITS
from uwf_git.model.thread import Present
from uwf_git.model.thread_id import ThreadId

_OPTIONS = {
    "maxSteps": "--max-steps N",
    "maxExecutionTime": "--max-execution-time SECONDS",
    "maxTokens": "--max-tokens N",
    "maxCost": "--max-cost USD",
}


class LimitReached(Refused):
    """The thread has used up what it was given."""

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


class BadLimit(Refused):
    """What is asked for is no limit."""

    code = "bad-limit"

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(
            f"{name[:60]} {problem}",
            hint=f"limits are {', '.join(LIMITS)}; null takes one away",
            limit=name,
        )


def check_asked(asked: Mapping[str, Any]) -> None:
    """Make sure that *asked* names limits, with what they may be; None takes one away.

    Raises:
        BadLimit: it does not.
    """
    for name, value in asked.items():
        if name not in LIMITS:
            raise BadLimit(name, "is no limit")
        problem = None if value is None else find_limit_problem(name, value)
        if problem is not None:
            raise BadLimit(name, problem)


def choose_limits(asked: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Give the limits of a new thread: those *asked* for, else those of its workflow's *config*.

    Raises:
        BadLimit: one is none, as that of a workflow which came from elsewhere may be.
    """
    given = {name: config[name] for name in LIMITS if name in config}
    merged = {**given, **asked}
    check_asked(merged)
    # In one order, so that equal threads begin with equal nodes.
    return {name: merged[name] for name in LIMITS if merged.get(name) is not None}


def check_limits(thread: ThreadId, present: Present) -> None:
    """Make sure that the thread may take another step.

    Raises:
        LimitReached: it may not.
    """
    spent = find_spent(present)
    if spent is not None:
        raise LimitReached(thread, spent)


def tell_cut_short(
    thread: ThreadId, present: Present, *, own_s: float | None
) -> tuple[str, str] | None:
    """Say why an agent was stopped after its time, and what to type, if the limit was the thread's.

    *own_s* is what the agent may take in any thread; None says that it was that.
    """
    left_s = find_time_left_s(present)
    if left_s is None or (own_s is not None and own_s <= left_s):
        return None
    cause = f"it took longer than the {left_s:.1f} s of execution time that the thread had left"
    more = f"`uwf thread amend {thread} {_OPTIONS['maxExecutionTime']}` gives it more"
    return f"{cause}, and was stopped", f"nothing was lost: {more}"
