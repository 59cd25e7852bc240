"""`uwf watch`."""

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import click

from uwf_git.cli.app.failure import INTERRUPTED
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import sigterm_as_interrupt, without_password_prompt
from uwf_git.cli.output.live import EventLines, full_screen
from uwf_git.cli.output.screen import (
    Cell,
    Column,
    describe_split,
    describe_usage,
    emit,
    emit_line,
    limit_option,
    note,
    paint_columns,
    render_columns,
    screen_of,
    shorten,
    tell_seconds,
    tell_silence,
    wide_option,
)
from uwf_git.cli.session import STDOUT, Session, terminal_size, wait_for_reader, write_stdout
from uwf_git.commands.agent_run.runs import running_rows
from uwf_git.commands.commit_events import EventOptions
from uwf_git.commands.family import Family
from uwf_git.commands.inspect.logs import find_last_log_line
from uwf_git.commands.inspect.overview import ThreadWatch
from uwf_git.commands.journal import EventsRequest, EventStream
from uwf_git.engine.events import parse_event_id
from uwf_git.engine.masking import find_secrets
from uwf_git.errors import StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.model.text import visible_line
from uwf_git.store.remotes.remotes import choose_remote
from uwf_git.store.store import Store
from uwf_git.store.threads.naming import ShortIds, read_short_ids, resolve_thread

# `uwf ps`.

_MS = 1000

_COLUMNS = (
    Column("mark", " "),
    Column("thread", "THREAD"),
    Column("status", "STATUS", 9),
    Column("workflow", "WORKFLOW", 6, least=8),
    Column("role", "ROLE", 1, least=8),
    Column("agent", "AGENT", 5, least=8),
    Column("pid", "PID", 8),
    Column("group", "GROUP", 8),
    Column("since", "SINCE", 7),
    Column("elapsed", "FOR", 2),
    Column("doing", "LAST LOGGED", 4, least=12),
)
_AT_LENGTH = {"status", "pid", "group", "since"}


_CLAIMED = (
    Column("thread", "THREAD"),
    Column("host", "MACHINE", 2),
    Column("role", "ROLE", 1, least=8),
)


@verb("uwf ps", "uwf ps --long", "uwf ps 01J7K9M2", "uwf ps --remote")
@click.argument("thread", required=False)
@click.option(
    "--remote",
    is_flag=True,
    help="List what has been claimed at the remote instead: by which machine, for which role.",
)
@wide_option
def ps_command(session: Session, *, thread: str | None, remote: bool, wide: bool) -> None:
    """List what runs now.

    One row for each thread of this store that a process works on; with THREAD, only for that one
    and its branches. pid is the engine's, group the
    process group of the agent. A row without a pid is an agent whose engine was killed: `uwf thread
    step` waits for it and takes its result. A row without a role is a driver between two steps, or
    asleep; with the status "left" a process that an agent left running when it had answered.
    """
    store = session.open_store(create=True)
    root = None if thread is None else resolve_thread(store, thread)
    if remote:
        _tell_claims(session, store, root, wide=wide)
        return
    rows = running_rows(store, now_ms=session.now_ms(), root=root)
    emit(
        session,
        rows,
        text=lambda rows: _table(session, store, rows, wide=wide),
        none="nothing runs; `uwf thread list` shows the threads",
    )


def _tell_claims(session: Session, store: Store, root: ThreadId | None, *, wide: bool) -> None:
    from uwf_git.commands.fleet.claims import Hub  # noqa: PLC0415 (network code: 70 ms)

    hub = Hub(store, without_password_prompt(session), choose_remote(store.config, None))
    family = None if root is None else Family(store, root)
    rows = [
        {"thread": each, "host": claim.said.get("host"), "role": claim.said.get("role") or None}
        for each, claim in hub.read_claims().items()
        if family is None or each in family
    ]
    emit(
        session,
        rows,
        text=lambda rows: paint_columns(rows, _CLAIMED, screen_of(session), wide=wide),
        none=f"no machine has claimed a thread at {hub.remote.name}",
    )


def _table(session: Session, store: Store, rows: list[dict[str, Any]], *, wide: bool) -> str:
    screen = screen_of(session)
    ids = read_short_ids(store) if session.is_screen else None
    is_whole = wide or screen.width is None
    columns = [each for each in _COLUMNS if is_whole or each.key not in _AT_LENGTH]
    cells: list[dict[str, Cell]] = []
    for row in rows:
        thread, elapsed_ms = row["thread"], row["elapsedMs"]
        silence = tell_silence(row["lastOutput"], session.now_ms())
        said = find_last_log_line(store, ThreadId(thread), session.environ)
        cells.append(
            {
                **row,
                "mark": screen.mark(row["status"] or ""),
                "thread": thread if ids is None else ids.shorten(thread),
                "workflow": row["workflowName"],
                "pid": str(row["pid"] or ""),
                "group": str(row["group"] or ""),
                "since": screen.tell_when(row["since"]),
                "elapsed": None if elapsed_ms is None else tell_seconds(elapsed_ms // _MS),
                "doing": ": ".join(filter(None, (silence, said))) or None,
            }
        )
    return paint_columns(cells, columns, screen, wide=wide)


# How often the store is looked at; times are told anew each second.
_PAUSE_S = 0.25

_WATCH_COLUMNS = (
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

    Threads with an agent at work come first: the role, the time so far, tokens and cost as
    reported, and the last line that the agent logged; then threads that wait for a person. The last
    line of the screen counts the threads. Ctrl-C ends the view, and never the work.

    With THREADs, only these and their branches; the view ends when they have ended. Without THREAD,
    a thread that has split is one row. In a pipe, and on a dumb terminal, there is a line for each
    thread, and another one whenever something has happened to it; as JSON it is a row of `uwf
    thread list`, with `atWork` while an agent is.
    """
    store = session.open_store(create=True)
    roots = [resolve_thread(store, each) for each in threads]
    watch = ThreadWatch(store, roots, session.environ, now_ms=session.now_ms())
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
                    now = (terminal_size(STDOUT), int(time.monotonic()))
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
        if self._session.output_format != "text":
            emit_line(self._session, row)
        else:
            cells = self._cells(row, is_live=False)
            told = (cells[each] for each in ("status", "thread", "workflow", "step", "doing"))
            words = (cell if isinstance(cell, str) else cell.text for cell in told if cell)
            line, width = visible_line("  ".join(words)), self._session.text_width()
            write_stdout(f"{shorten(line, width, end=self._screen.ellipsis)}\n")

    def _draw(self) -> list[str]:
        size = terminal_size(STDOUT)
        # Some terminals move to the next line when the last column is written.
        screen = self._screen._replace(width=size.columns - 1)
        if screen.now_ms is not None:
            screen = screen._replace(now_ms=self._session.now_ms())
        self._screen = screen
        rows = self._watch.list_rows()
        shown = rows[: max(size.lines - 2, 0)]
        cells = [self._cells(row, is_live=True) for row in shown]
        table = render_columns(cells, _WATCH_COLUMNS, screen) if shown else []
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


# `uwf events`.


@verb(
    "uwf events 01J7K9M2 --format text",
    "uwf events --follow | jq -r 'select(.type == \"workflow:error\").taskId'",
    "uwf events --since EVENT --follow",
    exits={1: "there is no such thread, or no such event", 130: "a follower was interrupted"},
)
@click.argument("thread", required=False)
@click.option("-f", "--follow", is_flag=True, help="Continue with new events.")
@click.option("--since", metavar="EVENT", help="Start after this event (its id, or a full commit).")
@limit_option("Stop after this many events.")
@click.option("--state", is_flag=True, help="Print the thread's state with each event.")
def events_command(session: Session, thread: str | None, **asked: Any) -> None:
    """Print the events of threads, one per line.

    The oldest comes first. The types are workflow:start, workflow:progress, workflow:complete,
    workflow:error, node:enter and node:exit; of a workflow of containers also loop:iteration,
    parallel:start and parallel:complete. Without THREAD the events of all threads are printed, in
    the order in which this machine has seen them; with it, those of the thread and its branches,
    whose parentTaskId names the thread that split. An event's id is a full commit, a dash and a
    word; it is the same everywhere, and --since prints what comes after it, without gaps or
    duplicates. An event without a node of its own, such as a kill or a join, has a timestamp in
    whole seconds, which may lie before the timestamp of the event above it. As text, each commit is
    one line, which shows its last event.

    --follow alone begins with the turns that are under way, and with a THREAD it stops when the
    thread and its branches have ended. What looks like a key is masked.

    `uwf config set onEvent CMD` makes CMD run for each later event that is recorded here, with the
    event on its standard input. No shell reads CMD; `sh -c '…'` is one. Each process runs it for
    what it has recorded, once the thread is free: the kill of a thread that runs may be told before
    the attempt that the kill has ended. `uwf events` has the order.
    """
    events = _Events(session, thread, asked)
    try:
        _print_all(session, events, asked["limit"])
    except KeyboardInterrupt:
        if not asked["follow"]:
            raise
        # A follower ends this way; it needs no message.
        raise click.exceptions.Exit(INTERRUPTED) from None
    if events.damage is not None:
        raise events.damage


class _Events:
    """The events of one call."""

    def __init__(self, session: Session, thread: str | None, asked: dict[str, Any]) -> None:
        self.damage: StoreDamaged | None = None
        """The first error of reading; reported when no more events come."""

        self._follow: bool = asked["follow"]
        self.store = store = session.open_store()
        since = None if asked["since"] is None else parse_event_id(asked["since"])
        options = EventOptions(with_state=asked["state"], secrets=find_secrets(session.environ))
        wanted = None if thread is None else resolve_thread(store, thread)
        request = EventsRequest(wanted, since, from_now=self._follow and since is None)
        self._stream = EventStream(store, request, options, self._keep)

    def all(self) -> Iterator[dict[str, Any]]:
        """Yield the recorded events and, with --follow, those that come."""
        yield from self._stream.read()
        while self._follow and not self._stream.is_over:
            wait_for_reader(0.2)
            yield from self._stream.read()

    def _keep(self, damage: StoreDamaged) -> None:
        if self._follow:
            note(f"error: {damage.message}")
            return
        if self.damage is not None:
            note(f"error: {self.damage.message}")
        self.damage = damage


def _print_all(session: Session, events: _Events, limit: int | None) -> None:
    """Print the events; as text a happening is one line, and counts as one."""
    if session.output_format == "text":
        lines = EventLines(session, screen_of(session), events.store)
        told = (found for event in events.all() if (found := list(lines.add(event))))
        each = None
        for each in islice(told, limit):
            write_stdout("".join(f"{line}\n" for line in each))
        if each is None:
            note("no events")
        return
    for event in islice(events.all(), limit):
        emit_line(session, event)
