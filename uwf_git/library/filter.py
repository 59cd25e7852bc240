"""Task filters: which tasks of a store are asked for.

Owns: the value. Knows nothing of: how tasks are listed. Source: seed 004, TaskFilter.
"""

from collections.abc import Collection
from dataclasses import dataclass

from uwf_git.commands.thread_list import ListRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFilter:
    """Which tasks are asked for; without anything, all that have not ended."""

    ended: bool = False
    """Whether those that were completed or killed are among them; asking for one of these
    statuses asks for it as well."""

    workflow: str | None = None
    """Only those of the workflow of this name or hash."""

    statuses: Collection[str] = ()
    """Only those with one of these; ``damaged`` are those that cannot be read."""

    after: int | None = None
    """Only those to which something happened then or later, in milliseconds since 1970."""

    before: int | None = None
    """Only those to which nothing has happened since then."""

    offset: int = 0
    limit: int | None = None


def ask_rows(wanted: TaskFilter) -> ListRequest:
    """Give *wanted* as the listing wants it."""
    return ListRequest(
        archived=wanted.ended,
        workflow=wanted.workflow,
        statuses=frozenset(wanted.statuses),
        after_ms=wanted.after,
        before_ms=wanted.before,
        offset=wanted.offset,
        limit=wanted.limit,
    )
