"""`uwf agent list`."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.commands.turn.agent_words import CONFIG_NAME
from uwf_git.commands.turn.known_agents import FoundAgent, find_agents


@verb("uwf agent list --format text", "uwf agent list --all")
@click.option("--all", "with_all", is_flag=True, help="Also those that are not installed.")
def command(session: Session, with_all: bool) -> None:  # noqa: FBT001 (click passes flags so)
    """List the known agents, and which are installed.

    Their programs are looked up on PATH. Any other command can be an agent as well.
    """
    default = session.agent or session.open_store(create=True).config.get(CONFIG_NAME) or ""
    found = find_agents(session.environ, with_versions=True)
    emit(session, [_row(each, default) for each in found if with_all or each.is_here])


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
