"""Where threads stand among others: which statuses need somebody, and which is shown first.

The terminal and the page order threads by this one table.
"""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal

from uwf_git.commands.agent_run.activity import RUNNING
from uwf_git.errors import StoreDamaged

Group = Literal["needs", "running", "others", "ended"]

DAMAGED = "damaged"
UNREADABLE = "unreadable"
"""Of a format that this uwf does not read; nothing is wrong with it."""

IN_GROUP: Mapping[Group, tuple[str, ...]] = MappingProxyType(
    {
        "needs": ("waiting", "failed", DAMAGED, UNREADABLE),
        "running": (RUNNING,),
        "others": ("paused", "ready", "split"),
        "ended": ("completed", "killed"),
    }
)
"""The statuses of each group, in the order in which they are shown: what needs somebody first."""

HOLDING = frozenset({*IN_GROUP["needs"], "paused"})
"""The statuses in which a branch goes on only when somebody does something."""


def name_damage(error: StoreDamaged) -> str:
    """Return the status of a thread that cannot be read."""
    return UNREADABLE if "format" in error.facts else DAMAGED


def order_statuses(*first: Group) -> tuple[str, ...]:
    """Return all statuses in the order in which they are shown, *first* first."""
    groups = dict.fromkeys([*first, *IN_GROUP])
    return tuple(status for group in groups for status in IN_GROUP[group])


def group_active(statuses: Collection[str]) -> Group:
    """Return the group of a thread that has not ended, of its status and its branches'."""
    groups: tuple[Group, ...] = ("needs", "running")
    return next((group for group in groups if set(IN_GROUP[group]) & set(statuses)), "others")


def sort_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """Return *counts* of statuses in the order in which these are shown; unknown ones last."""
    ranks = {status: rank for rank, status in enumerate(order_statuses())}
    return {
        status: counts[status]
        for status in sorted(counts, key=lambda each: (ranks.get(each, len(ranks)), each))
    }


def tell_standing(row: Mapping[str, Any], order: Iterable[str]) -> str:
    """Return the status by which a row is ordered: of one that has split, its branches' first."""
    below = row.get("branches") or {}
    status = str(row["status"])
    return next((each for each in order if each in below), status) if status == "split" else status
