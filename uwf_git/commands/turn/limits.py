"""Limits of a thread: chosen at the start, and what was spent of them with its branches."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from uwf_git.commands.split.family import list_branches
from uwf_git.errors import Refused
from uwf_git.model.limits import LIMITS, Spent, find_limit_problem, find_spent, find_time_left_s
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import ThreadState, add_usage
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.history import read_root
from uwf_git.store.threads.snapshot import Snapshot, read_snapshot

# Limits of a thread: choose them at the start, and refuse a step beyond them.
#
# The order: option, workflow, none. How they are counted: model/limits.py.


class LimitReached(Refused):
    code = "limit-reached"

    def __init__(self, thread: ThreadId, spent: Spent) -> None:
        super().__init__(
            f"thread {thread} is at its limit: {spent.told}",
            hint=f"give it more with `uwf thread amend {thread} {_option(spent.name)}`, or end it "
            f"with `uwf thread kill {thread}`",
            thread=thread,
            limit=spent.name,
            used=spent.used,
            of=spent.limit,
        )


def _option(name: str) -> str:
    return f"{LIMITS[name].option} {LIMITS[name].metavar}"


def check_asked(asked: Mapping[str, Any]) -> None:
    """Check names and values of limits; None removes one."""
    for name, value in asked.items():
        takes_away = value is None and name in LIMITS
        problem = None if takes_away else find_limit_problem(name, value)
        if problem is not None:
            raise Refused(
                f"{name[:60]} {problem}",
                code="bad-limit",
                hint=f"limits are {', '.join(LIMITS)}",
                limit=name,
            )


def choose_limits(asked: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of a new thread: as *asked*, else as its workflow's *config* says."""
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
    limited: "Spending", *, who: str, own_s: float | None, spent_ms: int = 0
) -> tuple[str, str] | None:
    """Return cause and hint if the thread's limit, not *own_s*, cut *who* short; else None."""
    left_s = find_time_left_s(limited.present, spent_ms=spent_ms)
    if left_s is None or (own_s is not None and own_s <= left_s):
        return None
    cause = f"{who} took longer than the {left_s:.1f} s of execution time that the thread had left"
    more = f"`uwf thread amend {limited.thread} {_option('maxExecutionTime')}` gives it more"
    return f"{cause}, and was stopped", f"nothing was lost: {more}"


# What a thread and its branches spent: the limits of a thread are for all of them together.


class Spending(NamedTuple):
    thread: ThreadId
    """Whose limits they are: the thread's own, or its trunk's."""

    present: ThreadState
    """That thread's state, with what its branches spent; ``depth`` counts all steps."""


def read_spending(store: Store, snapshot: Snapshot, present: ThreadState) -> Spending:
    """Return the limits of the thread at *snapshot*, and what was spent of them here."""
    root = read_root(store, snapshot)
    at_root = present if root is snapshot else root.get_present()
    # Without limits nobody asks what the branches spent.
    spent = add_branches(store, root, at_root) if at_root.limits else _count_joined(at_root)
    return Spending(root.record.thread, spent)


def add_branches(store: Store, at: Snapshot, present: ThreadState) -> ThreadState:
    """Return *present*, the thread's state at *at*, with what its branches spent until now.

    Its ``depth`` counts all steps, those of joined branches as well.
    """
    spent = _count_joined(present)
    return spent if present.split is None else _add_open_branches(store, at, spent)


def _count_joined(present: ThreadState) -> ThreadState:
    return present._replace(depth=sum(present.visits.values()) or present.depth)


def find_limit(store: Store, snapshot: Snapshot) -> LimitReached | None:
    spending = read_spending(store, snapshot, snapshot.get_present())
    spent = find_spent(spending.present)
    return None if spent is None else LimitReached(spending.thread, spent)


def find_steps_left(store: Store, thread: ThreadId) -> int | None:
    """Return how many steps *thread* and its branches may still begin; None: no limit."""
    snapshot = read_snapshot(store, get_head(store, thread).commit)
    present = read_spending(store, snapshot, snapshot.get_present()).present
    most = present.limits.get("maxSteps")
    return None if most is None else most - present.depth


def _add_open_branches(store: Store, at: Snapshot, spent: ThreadState) -> ThreadState:
    inherited = sum(at.get_present().visits.values())
    for branch in list_branches(store, at):
        if branch.head is None:
            continue
        inner = read_snapshot(store, branch.head.commit)
        present = inner.get_present()
        known = inherited if "entry" in inner.get_start().payload else 0
        usage: dict[str, Any] = add_usage(dict(spent.usage), dict(present.usage))
        spent = spent._replace(
            depth=spent.depth + sum(present.visits.values()) - known,
            usage=usage,
            execution_ms=spent.execution_ms + present.execution_ms,
        )
        if present.split is not None:
            spent = _add_open_branches(store, inner, spent)
    return spent
