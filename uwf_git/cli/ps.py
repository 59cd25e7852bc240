"""`uwf ps`."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.output.screen import Painted, screen_of
from uwf_git.cli.output.table import Cell, Column, render_columns, wide_option
from uwf_git.cli.output.times import tell_seconds, tell_silence
from uwf_git.cli.session.caller import without_password_prompt
from uwf_git.cli.session.settings import Session
from uwf_git.commands.agent_run.running import running_rows
from uwf_git.commands.inspect.logs import find_last_log_line
from uwf_git.commands.split.family import Family
from uwf_git.model.names import ThreadId
from uwf_git.store.remotes.remotes import choose_remote
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import resolve_thread
from uwf_git.store.threads.naming import read_short_ids

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
def command(session: Session, *, thread: str | None, remote: bool, wide: bool) -> None:
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
        _tell_claims(session, store, root)
        return
    rows = running_rows(store, now_ms=session.now_ms(), root=root)
    emit(
        session,
        rows,
        text=lambda rows: _table(session, store, rows, wide=wide),
        none="nothing runs; uwf thread list shows the threads",
    )


def _tell_claims(session: Session, store: Store, root: ThreadId | None) -> None:
    from uwf_git.commands.fleet.claims import Hub  # noqa: PLC0415 (network code: 70 ms)

    hub = Hub(store, without_password_prompt(session), choose_remote(store.config, None))
    family = None if root is None else Family(store, root)
    rows = [
        {"thread": each, "host": claim.said.get("host"), "role": claim.said.get("role") or None}
        for each, claim in hub.read_claims().items()
        if family is None or each in family
    ]
    screen = screen_of(session)
    emit(
        session,
        rows,
        text=lambda rows: (
            Painted("\n".join(render_columns(rows, _CLAIMED, screen, wide=False))) if rows else ""
        ),
        none=f"no machine has claimed a thread at {hub.remote.name}",
    )


def _table(session: Session, store: Store, rows: list[dict[str, Any]], *, wide: bool) -> str:
    if not rows:
        return ""
    screen = screen_of(session)
    ids = read_short_ids(store) if session.is_screen else None
    columns = [each for each in _COLUMNS if wide or screen.width is None or _is_brief(each)]
    cells: list[dict[str, Cell]] = []
    for row in rows:
        thread, elapsed_ms = row["thread"], row["elapsedMs"]
        silence = tell_silence(row["lastOutput"], session.now_ms())
        said = find_last_log_line(store, ThreadId(thread), session.environ)
        cells.append(
            {
                "mark": screen.mark(row["status"] or ""),
                "thread": thread if ids is None else ids.shorten(thread),
                "status": row["status"],
                "workflow": row["workflowName"],
                "role": row["role"],
                "agent": row["agent"],
                "pid": _number(row["pid"]),
                "group": _number(row["group"]),
                "since": screen.tell_when(row["since"]),
                "elapsed": None if elapsed_ms is None else tell_seconds(elapsed_ms // _MS),
                "doing": ": ".join(filter(None, (silence, said))) or None,
            }
        )
    return Painted("\n".join(render_columns(cells, columns, screen, wide=wide)))


def _is_brief(column: Column) -> bool:
    return column.key not in _AT_LENGTH


def _number(number: int | None) -> str | None:
    return None if number is None else str(number)
