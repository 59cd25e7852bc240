"""`json-cas has`."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas.read import has_node


@verb(
    "json-cas has 8FWKR3TN5V1QA",
    "json-cas has 8FWKR3TN5V1QA > /dev/null && echo yes",
    exits={0: "it is in the store", 1: "it is not, or the prefix is ambiguous"},
)
@click.argument("node", metavar="HASH")
def command(session: Session, node: str) -> None:
    """Check whether a node is in the store."""
    presence = has_node(session.open_store(), node)
    emit(session, {"hash": presence.hash, "exists": presence.exists}, text=_text)
    if not presence.exists:
        raise click.exceptions.Exit(1)


def _text(document: dict[str, Any]) -> str:
    return "yes" if document["exists"] else "no"
