"""`uwf watch`."""

import time
from typing import Any

import click

from uwf_git.cli.app.failure import INTERRUPTED
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.json_text import render_json
from uwf_git.cli.output.live import full_screen
from uwf_git.cli.output.render import emit
from uwf_git.cli.output.screen import screen_of
from uwf_git.cli.output.spending import describe_usage
from uwf_git.cli.output.table import Cell, Column, describe_split, render_columns, shorten
from uwf_git.cli.output.times import tell_silence
from uwf_git.cli.session.caller import sigterm_as_interrupt
from uwf_git.cli.session.settings import Session
from uwf_git.cli.session.streams import stdout_is_utf8, stdout_size, wait_for_reader, write_stdout
from uwf_git.commands.inspect.watching import ThreadWatch, WatchRequest
from uwf_git.model.names import ThreadId
from uwf_git.model.text import visible_line
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import resolve_thread
from uwf_git.store.threads.naming import ShortIds, read_short_ids

_MS = 1000
# How often the store is looked at; times are told anew each second.
_PAUSE_S = 0.25

_COLUMNS = (
    Column("thread", "THREAD"),
    Column("status", "STATUS", least=11),
    Column("workflow", "WORKFLOW", 5, least=8),
    Column("step", "STEP", 6),
    Column("task", "TASK", 4, least=12),
    Column("spent", "SPENT", 3),
    Column("doing", "DOING", 1, least=14),
    Column("when", "WHEN", 2),
)


@verb(
    "uwf watch",
    "uwf watch 01J7K9M2",
    "uwf watch --format json | jq -r .status",
    exits={0: "the threads that were named have ended", 130: "Ctrl-C ended the view"},
)
@click.argument("threads", nargs=-1, metavar="[THREAD]...")
def command(session: Session, threads: tuple[str, ...]) -> None:
    """Show the threads live.

    Those at work come first, each with its role, how long that takes, tokens and cost as reported,
    and the last line that its agent logged; then those that wait for a person. The last line of the
    screen counts them. Ctrl-C ends the view, and never the work.

    With THREADs, only these and their branches; the view ends when they have ended. Without, a
    thread that has split is one row. In a pipe, and on a dumb terminal, there is a line for each
    thread, and another one whenever something has happened to it; as JSON it is a row of `uwf
    thread list`, with `atWork` while an agent is.
    """
    store = session.open_store(create=True)
    roots = [resolve_thread(store, each) for each in threads]
    watch = ThreadWatch(store, WatchRequest(roots, session.environ), now_ms=session.now_ms())
    view = _View(session, store, watch)
    try:
        if session.is_screen and session.environ.get("TERM") != "dumb":
            view.show()
        else:
            view.print_changes()
    except KeyboardInterrupt:
        # A view ends this way; it needs no message.
        raise click.exceptions.Exit(INTERRUPTED) from None


class _View:
    """What one call shows."""

    def __init__(self, session: Session, store: Store, watch: ThreadWatch) -> None:
        self._session, self._store, self._watch = session, store, watch
        self._screen = screen_of(session)
        self._ids: ShortIds | None = None

    def show(self) -> None:
        """Show the threads until they have ended, or Ctrl-C; the last view stays."""
        lines: list[str] = []
        drawn: tuple[object, ...] = ()
        try:
            with full_screen() as screen:
                while True:
                    has_changed = bool(self._watch.look())
                    now = (stdout_size(), int(time.monotonic()))
                    if has_changed or self._ids is None:
                        self._ids = read_short_ids(self._store)
                    if has_changed or now != drawn:
                        lines, drawn = self._draw(), now
                        screen.show(lines)
                    if self._watch.is_over:
                        return
                    screen.rest(_PAUSE_S)
        finally:
            write_stdout("".join(f"{line}\n" for line in lines))

    def print_changes(self) -> None:
        """Print a line for each thread, and for each change."""
        with sigterm_as_interrupt():
            while True:
                rows = self._watch.look()
                if self._session.is_screen and rows:
                    self._ids = read_short_ids(self._store)
                for row in rows:
                    self._print(row)
                if self._watch.is_over:
                    return
                wait_for_reader(_PAUSE_S)

    def _print(self, row: dict[str, Any]) -> None:
        if self._session.output_format == "json":
            write_stdout(render_json(row, ascii_only=not stdout_is_utf8()))
        elif self._session.output_format == "yaml":
            write_stdout("---\n")
            emit(self._session, row)
        else:
            cells = self._cells(row, is_live=False)
            told = (cells[each] for each in ("status", "thread", "workflow", "step", "doing"))
            words = (cell if isinstance(cell, str) else cell.text for cell in told if cell)
            line, width = visible_line("  ".join(words)), self._session.text_width()
            line = line if width is None else shorten(line, width, end=self._screen.ellipsis)
            write_stdout(f"{line}\n")

    def _draw(self) -> list[str]:
        size = stdout_size()
        # Some terminals move to the next line when the last column is written.
        screen = self._screen._replace(width=size.columns - 1)
        if screen.now_ms is not None:
            screen = screen._replace(now_ms=self._session.now_ms())
        self._screen = screen
        rows = self._watch.list_rows()
        shown = rows[: max(size.lines - 2, 0)]
        cells = [self._cells(row, is_live=True) for row in shown]
        table = render_columns(cells, _COLUMNS, screen) if shown else []
        last = shorten(self._count(len(rows), len(shown)), size.columns - 1, end=screen.ellipsis)
        return [*table, last]

    def _count(self, number: int, shown: int) -> str:
        if not number:
            return "no threads"
        counts = ", ".join(f"{many} {status}" for status, many in self._watch.count().items())
        return counts if shown == number else f"{counts}; {shown} of {number} shown"

    def _cells(self, row: dict[str, Any], *, is_live: bool) -> dict[str, Cell]:
        summary = self._watch.summarize(row)
        thread = row["thread"]
        work = row.get("atWork")
        since_ms = row.get("lastUpdateTime") if work is None else work["since"]
        return {
            "thread": thread if self._ids is None else self._ids.shorten(thread),
            "status": self._screen.name_status(*describe_split(row)),
            "workflow": row.get("workflowName"),
            "step": str(row.get("depth") or ""),
            "task": summary.task,
            "doing": self._tell_doing(row, is_live=is_live) or summary.last,
            "spent": self._tell_spent(row) if is_live else None,
            "when": self._screen.tell_when(since_ms),
        }

    def _tell_spent(self, row: dict[str, Any]) -> str:
        """Return what a thread at work has used, as far as agents reported it."""
        work = self._watch.find_work(ThreadId(row["thread"]))
        return "" if work is None else ", ".join(describe_usage(work.read_usage(), short=True))

    def _tell_doing(self, row: dict[str, Any], *, is_live: bool) -> str:
        work = self._watch.find_work(ThreadId(row["thread"]))
        if work is None:
            return ", ".join(self._watch.list_working_below(row["thread"]))
        at_work = work.view()
        parts = [at_work.role]
        if at_work.attempt > 1:
            parts.append(f"attempt {at_work.attempt}")
        if not is_live:
            return ", ".join(parts)
        silence = tell_silence(work.find_last_output_ms(), self._session.now_ms())
        parts += [silence] if silence else []
        said = work.read_log()
        return ", ".join(parts) + (f": {said}" if said else "")
