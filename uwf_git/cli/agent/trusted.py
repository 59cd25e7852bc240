"""`uwf agent trusted`."""

from typing import Any

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.output.render_text import render_text
from uwf_git.cli.session.settings import Session
from uwf_git.store.trust import Trusted, list_trusted


@verb("uwf agent trusted --format text")
def command(session: Session) -> None:
    """List the agent commands that may run here.

    Commands that were typed here are among them. A command that means files, by relative paths, may
    run where these are the same; one without may run in any directory.
    """
    rows = [trusted_row(each) for each in list_trusted(session.open_store(create=True))]
    emit(
        session, rows, text=_text, none="no command is trusted here; uwf agent trust CMD trusts one"
    )


def _text(rows: list[dict[str, Any]]) -> str:
    # Not a table: a command may be a whole script, and a cut one could hide its harmful part.
    return "\n".join(
        render_text({name: value for name, value in row.items() if value is not None})
        for row in rows
    )


def trusted_row(trusted: Trusted) -> dict[str, Any]:
    """Return the document of one trusted agent."""
    agent = trusted.agent or {}
    settings = {name: value for name, value in agent.items() if name != "command"}
    return {
        "command": agent.get("command", trusted.text),
        "settings": settings or None,
        "files": list(trusted.files) or None,
        "directory": trusted.directory if trusted.files else None,
        "where": "store" if trusted.is_own else "user",
    }
