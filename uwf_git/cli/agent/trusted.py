"""`uwf agent trusted`."""

from typing import Any

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.store.trust import Trusted, list_trusted


@verb("uwf agent trusted --format text")
def command(session: Session) -> None:
    """List the agent commands that may run here.

    Commands that were typed here are among them. Of a long one only its digest is known.
    """
    store = session.open_store(create=True)
    emit(session, [trusted_row(each) for each in list_trusted(store)])


def trusted_row(trusted: Trusted) -> dict[str, Any]:
    """Return the document of one trusted agent."""
    agent = trusted.agent or {}
    settings = {name: value for name, value in agent.items() if name != "command"}
    return {
        "command": agent.get("command", trusted.text),
        "settings": settings or None,
        "where": "store" if trusted.is_own else "user",
    }
