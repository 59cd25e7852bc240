"""`uwf ps`."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.output.render_text import render_text
from uwf_git.cli.session.settings import Session
from uwf_git.commands.agent_run.running import running_rows
from uwf_git.model.time_text import render_time
from uwf_git.store.threads.heads import resolve_thread

_COLUMNS = ("thread", "status", "workflowName", "role", "agent", "pid", "group")
_DAY_S, _HOUR_S, _MINUTE_S, _MS = 86_400, 3600, 60, 1000


@verb("uwf ps", "uwf ps --format text", "uwf ps 01J7K9M2")
@click.argument("thread", required=False)
def command(session: Session, thread: str | None) -> None:
    """List what runs now.

    One row for each thread of this store that a process works on; with THREAD, only for that one
    and its branches. pid is the engine's, group the
    process group of the agent. A row without a pid is an agent whose engine was killed: `uwf thread
    step` waits for it and takes its result. A row without a role is a driver between two steps, or
    asleep.
    """
    store = session.open_store(create=True)
    root = None if thread is None else resolve_thread(store, thread)
    rows = running_rows(store, now_ms=session.now_ms(), root=root)
    width = session.text_width()
    emit(session, rows, text=lambda rows: _table(rows, width))


def _table(rows: list[dict[str, Any]], width: int | None) -> str:
    shown = [
        {name: row[name] for name in _COLUMNS}
        | {
            "since": None if row["since"] is None else render_time(row["since"]),
            "elapsed": None if row["elapsedMs"] is None else _elapsed(row["elapsedMs"] // _MS),
        }
        for row in rows
    ]
    return render_text(shown, width=width)


def _elapsed(seconds: int) -> str:
    """Format a duration as ps does: 02:05, 1:02:05, 3-01:02:05."""
    days, rest = divmod(seconds, _DAY_S)
    hours, rest = divmod(rest, _HOUR_S)
    minutes, seconds = divmod(rest, _MINUTE_S)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{seconds:02}"
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes:02}:{seconds:02}"
