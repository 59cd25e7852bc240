"""`uwf agent list`."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.screen import emit, screen_of
from uwf_git.cli.output.table import Cell, Column, paint_columns, wide_option
from uwf_git.cli.session import Session
from uwf_git.commands.turn.bind_roles import FoundAgent, find_agents
from uwf_git.commands.turn.next_move import CONFIG_NAME

_COLUMNS = (
    Column("agent", "AGENT"),
    Column("default", "DEFAULT", 2),
    Column("installed", "INSTALLED", 3),
    Column("version", "VERSION", 4, least=8),
    Column("about", "ABOUT", 1, least=20),
    Column("path", "PATH", 6, least=20),
)


@verb("uwf agent list --format text", "uwf agent list --all")
@click.option("--all", "with_all", is_flag=True, help="Also those that are not installed.")
@wide_option
def list_command(session: Session, *, with_all: bool, wide: bool) -> None:
    """List the known agents, and which are installed.

    Their programs are looked up on PATH. Any other command can be an agent as well.
    """
    default = session.agent or session.open_store(create=True).config.get(CONFIG_NAME) or ""
    found = find_agents(session.environ, with_versions=True)
    rows = [_row(each, default) for each in found if with_all or each.is_here]
    emit(session, rows, text=lambda rows: _table(session, rows, wide=wide))


def _table(session: Session, rows: list[dict[str, Any]], *, wide: bool) -> str:
    screen = screen_of(session)
    cells: list[dict[str, Cell]] = [
        {
            **row,
            "default": "yes" if row["default"] else None,
            "installed": "yes" if row["installed"] else "no",
        }
        for row in rows
    ]
    return paint_columns(cells, _COLUMNS, screen, wide=wide)


def _row(found: FoundAgent, default: str) -> dict[str, Any]:
    agent = found.agent
    row: dict[str, Any] = {
        "agent": agent.command,
        "default": default.split(maxsplit=1)[:1] == [agent.command],
        "installed": found.is_here,
        "version": found.version,
        "path": found.path,
    }
    told = agent.about if found.is_here else f"{agent.about}: {agent.install}"
    return {**row, "about": f"{told}: {agent.example}" if agent.example else told}
