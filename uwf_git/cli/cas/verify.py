"""`json-cas verify`."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas.schema import NodeFinding, verify_nodes
from uwf_git.errors import StoreDamaged
from uwf_git.model.text import one_line


@verb(
    "json-cas verify 8FWKR3TN5V1QA",
    "json-cas verify $(json-cas walk 8FWK | jq -r '.[].hash')",
    exits={5: "problems were found; all of them are listed"},
)
@click.argument("nodes", metavar="HASH...", nargs=-1, required=True)
def command(session: Session, nodes: tuple[str, ...]) -> None:
    """Check nodes against their names.

    Every copy that any ref keeps is read and hashed again; the payload is checked against its
    schema, and what it refers to must be in the store.
    """
    verified = verify_nodes(session.open_store(), list(nodes))
    document = {
        "ok": not verified.findings,
        "checked": list(verified.checked),
        "problems": [_finding_document(each) for each in verified.findings],
    }
    emit(session, document, text=_text)
    if verified.findings:
        raise click.exceptions.Exit(StoreDamaged.exit_status)


def _finding_document(finding: NodeFinding) -> dict[str, Any]:
    document = {"node": finding.node, "message": finding.message}
    places = {"ref": finding.ref, "path": finding.path}
    return document | {name: place for name, place in places.items() if place is not None}


def _text(document: dict[str, Any]) -> str:
    if document["ok"]:
        count = len(document["checked"])
        return "ok: 1 node" if count == 1 else f"ok: {count} nodes"
    return "\n".join(
        one_line(": ".join(filter(None, map(each.get, ("node", "ref", "path", "message")))))
        for each in document["problems"]
    )
