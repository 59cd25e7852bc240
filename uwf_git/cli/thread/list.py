"""`uwf thread list`."""

import shlex
from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.screen import (
    MOMENT,
    Cell,
    Column,
    Count,
    describe_split,
    emit,
    limit_option,
    note,
    paint_columns,
    screen_of,
    wide_option,
)
from uwf_git.cli.session import Session
from uwf_git.commands.inspect.list import (
    ASKED,
    ListRequest,
    list_lately_ended,
    list_thread_rows,
    resolve_asked,
    summarize_thread,
)
from uwf_git.errors import BadUsage
from uwf_git.store.store import Store
from uwf_git.store.threads.naming import read_short_ids

_MOST_COUNTED = 100
_LATELY_MS = 24 * 3600 * 1000

_COLUMNS = (
    Column("thread", "THREAD"),
    Column("status", "STATUS", least=11),
    Column("workflow", "WORKFLOW", 5, least=8),
    Column("step", "STEP", 6),
    Column("task", "TASK", 1, least=12),
    Column("last", "LAST", 3, least=14),
    Column("when", "WHEN", 2),
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
    type=click.Choice(ASKED),
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
    "--before", type=MOMENT, metavar="WHEN", help="Only threads whose last event was before then."
)
@click.option(
    "--children",
    "parent",
    metavar="THREAD",
    help="Only branches of this thread, and threads that its agents started; ended ones as well.",
)
@click.option("--branches", is_flag=True, help="The branches of threads as well, as rows.")
@limit_option(default=50)
@click.option(
    "--offset",
    type=Count(0),
    metavar="N",
    default=0,
    show_default=True,
    help="How many to skip first.",
)
@wide_option
def command(session: Session, *, limit: int, offset: int, wide: bool, **asked: Any) -> None:
    """List the threads.

    The newest first, by their starts. --after and --before compare the time of the last event, be
    it a step, a pause or the end (lastUpdateTime, here in whole seconds). Archived threads are
    listed with --all, or with a status that only they have (completed, killed). `--status waiting`
    lists threads that wait for a person, and `--status running` those with a process at work.

    A thread that has split into branches is one row, with their number by status. With a status,
    branches are rows too, so that none that waits or has failed is missed.

    At a terminal, those that ended within a day are listed as well, unless a status is asked for.
    """
    extra = click.get_current_context().args
    if extra:
        raise BadUsage(
            f"uwf thread list takes no {extra[0][:60]}: it lists all threads",
            code="no-list-of",
            hint=f"`uwf thread list --workflow {shlex.quote(extra[0][:60])}` lists those of a "
            "workflow, `uwf thread show THREAD` shows a thread",
        )
    # One more than is shown, to know whether there are more.
    request = _request(session, asked)._replace(limit=limit + 1, offset=offset, cwd=session.cwd)
    store = session.open_store(create=True)
    rows = list_thread_rows(store, request)
    has_ended = request.archived or request.statuses or request.parent
    ended: list[dict[str, Any]] = []
    if session.is_screen and not (offset or has_ended):
        after_ms = max(request.after_ms or 0, session.now_ms() - _LATELY_MS)
        meant = request.workflow and resolve_asked(store, request.workflow, session.cwd)
        ended = list_lately_ended(store, request._replace(after_ms=after_ms, workflow=meant))
        rows += ended
        rows.sort(key=lambda row: str(row["thread"]), reverse=True)
    if len(rows) > limit:
        rows = rows[:limit]
        # With --offset the ended ones are not listed, so the next ones would not be the next.
        others = "" if ended else f", or the next ones with --offset {offset + limit}"
        note(f"note: there are more than {offset + limit}; print them with --limit N{others}")
    if not rows and session.output_format == "text":
        is_plain = not offset and not any(asked.values())
        told = "no thread matches" + ("" if has_ended else "; --all looks at those that have ended")
        note(_tell_none(store) if is_plain else told)
    emit(session, rows, text=lambda rows: _table(session, store, rows, wide=wide))
    waiting = [row["thread"] for row in rows if "question" in row]
    if session.is_screen and waiting:
        others = f"; {len(waiting) - 1} more wait" if len(waiting) > 1 else ""
        note(f"next: uwf thread answer {read_short_ids(store).shorten(waiting[0])}{others}")


# A name is answered in words, and not as one argument too many.
command.allow_extra_args = True


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
        raise BadUsage(
            f"nothing is after {after.text} and before {before.text}",
            code="no-time-between",
            hint="--after takes the earlier of the two: `--after 7d --before 1d`",
        )
    return request


def _tell_none(store: Store) -> str:
    """Return the line that stands for an empty list of the active threads."""
    ended = len(list_thread_rows(store, ListRequest(archived=True, limit=_MOST_COUNTED)))
    if not ended:
        return "there are no threads yet: `uwf run WORKFLOW -p '…'` begins one"
    number = str(ended) if ended < _MOST_COUNTED else f"{ended} or more"
    have = "has" if ended == 1 else "have"
    return f"no active threads; {number} {have} ended: `uwf thread list --all` shows them"


def _table(session: Session, store: Store, rows: list[dict[str, Any]], *, wide: bool) -> str:
    screen = screen_of(session)
    ids = read_short_ids(store) if session.is_screen else None
    cells: list[dict[str, Cell]] = []
    for row in rows:
        summary = summarize_thread(store, row)
        status, more = describe_split(row)
        more += ", diverged" if "diverged" in row else ""
        cells.append(
            {
                "thread": row["thread"] if ids is None else ids.shorten(row["thread"]),
                "status": screen.name_status(status, more),
                "workflow": row.get("workflowName"),
                "step": str(row.get("depth") or ""),
                "task": summary.task,
                "last": summary.last,
                "when": screen.tell_when(row.get("lastUpdateTime")),
            }
        )
    return paint_columns(cells, _COLUMNS, screen, wide=wide)
