"""`json-cas has`."""

from typing import Any

import click

from uwf_git.cli.render import emit
from uwf_git.cli.settings import Session
from uwf_git.cli.verb import verb
from uwf_git.commands.cas_has import has_node


@verb(
    "json-cas has 8FWKR3TN5V1QA",
    "json-cas has 8FWKR3TN5V1QA > /dev/null && echo yes",
    exits={0: "it is there", 1: "it is not there, or several nodes begin so"},
)
@click.argument("node", metavar="HASH")
def command(session: Session, node: str) -> None:
    """Tell whether a node is in the store."""
    presence = has_node(session.open_store(), node)
    emit(session, {"hash": presence.hash, "exists": presence.exists}, text=_text)
    if not presence.exists:
        raise click.exceptions.Exit(1)


def _text(document: dict[str, Any]) -> str:
    return "yes" if document["exists"] else "no"
