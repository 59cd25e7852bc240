"""`uwf thread list`."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.counts import Count, limit_option
from uwf_git.cli.output.render import emit, note
from uwf_git.cli.output.render_text import render_text
from uwf_git.cli.output.time_words import MOMENT, Moment
from uwf_git.cli.session.settings import Session
from uwf_git.commands.agent_run.activity import RUNNING
from uwf_git.commands.inspect.branches import DAMAGED
from uwf_git.commands.inspect.list import ListRequest, list_thread_rows
from uwf_git.errors import BadUsage
from uwf_git.model.thread import FROM_TASK_WORDS, STATUSES

_DEFAULT_LIMIT = 50
_COLUMNS = ("thread", "status", "workflowName", "depth", "said")


class NoTimeBetween(BadUsage):
    """--after is not earlier than --before."""

    code = "no-time-between"

    def __init__(self, after: Moment, before: Moment) -> None:
        super().__init__(
            f"nothing is after {after.text} and before {before.text}",
            hint="--after takes the earlier of the two: `--after 7d --before 1d`",
        )


@verb(
    "uwf thread list",
    "uwf thread list --all --workflow solve-issue --status completed --status killed",
    "uwf thread list --children 01J7K9M2",
    "uwf thread list --all --after 7d --before 2026-11-01 --offset 50 --limit 50",
)
@click.option("--all", "archived", is_flag=True, help="Archived threads as well.")
@click.option("--workflow", metavar="NAME", help="Only threads of this workflow (name or hash).")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice([*STATUSES, RUNNING, DAMAGED, *FROM_TASK_WORDS]),
    help="Only threads with this status; may be repeated. pending is ready, cancelled is killed.",
)
@click.option(
    "--after",
    type=MOMENT,
    metavar="WHEN",
    help="Only threads whose last event was then or later: 30m, 12h, 7d, 2w (ago), a date, "
    "or an ISO time; UTC unless it says otherwise.",
)
@click.option(
    "--before", type=MOMENT, metavar="WHEN", help="Only threads whose last event was before."
)
@click.option(
    "--children",
    "parent",
    metavar="THREAD",
    help="Only branches of this thread, and threads that its agents started; ended ones as well.",
)
@click.option("--branches", is_flag=True, help="The branches of threads as well, as rows.")
@limit_option(default=_DEFAULT_LIMIT)
@click.option(
    "--offset",
    type=Count(0),
    metavar="N",
    default=0,
    show_default=True,
    help="How many to skip first.",
)
def command(session: Session, *, limit: int, offset: int, **asked: Any) -> None:
    """List the threads.

    The newest first, by their starts. --after and --before compare the time of the last event
    (lastUpdateTime), be it a step, a pause or the end. Archived threads are listed with --all, or
    with a status that only they have (completed, killed). `--status waiting` lists threads that
    wait for a person, and `--status running` those with a process at work.

    A thread that has split into branches is one row, with their number by status. With a status,
    branches are rows too, so that none that waits or has failed is missed.
    """
    # One more than is shown, to know whether there are more.
    request = _request(session, asked)._replace(limit=limit + 1, offset=offset, cwd=session.cwd)
    rows = list_thread_rows(session.open_store(create=True), request)
    if len(rows) > limit:
        rows = rows[:limit]
        ways = f"--limit N, or the next ones with --offset {offset + limit}"
        note(f"note: there are more than {offset + limit}; print them with {ways}")
    width = session.text_width()
    emit(session, rows, text=lambda rows: _table(rows, width))


def _request(session: Session, asked: dict[str, Any]) -> ListRequest:
    after, before = asked["after"], asked["before"]
    now_ms = session.now_ms() if after or before else 0
    request = ListRequest(
        asked["archived"],
        asked["workflow"],
        frozenset(asked["statuses"]),
        None if after is None else after.at(now_ms),
        None if before is None else before.at(now_ms),
        parent=asked["parent"],
        branches=asked["branches"],
    )
    after_ms, before_ms = request.after_ms, request.before_ms
    if after_ms is not None and before_ms is not None and after_ms >= before_ms:
        raise NoTimeBetween(after, before)
    return request


def _table(rows: list[dict[str, Any]], width: int | None) -> str:
    shown = [
        {name: row.get(name) for name in _COLUMNS} | {"status": _status(row), "said": _said(row)}
        for row in rows
    ]
    return render_text(shown, width=width)


def _status(row: dict[str, Any]) -> str:
    """Return the status, those of its branches, and whether it has diverged from a remote."""
    status: str = row["status"]
    if "branches" in row:
        status += f" ({count_by_status(row['branches'])})"
    return f"{status}, diverged" if "diverged" in row else status


def count_by_status(counts: dict[str, int]) -> str:
    """Return the numbers of branches in words: ``2 running, 1 failed``."""
    return ", ".join(f"{number} {status}" for status, number in counts.items())


def _said(row: dict[str, Any]) -> str | None:
    """Return the last event, the open question, or the problem of the thread."""
    if "question" in row:
        return f"{row['waiting']['role']} is asked: {row['question']}"
    told: str | None = row.get("said", row.get("error"))
    return told
