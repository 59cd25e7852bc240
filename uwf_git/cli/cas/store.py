"""`json-cas` verbs on a store: init, bootstrap, verify."""

from typing import Any

import click

from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.output.table import render_text
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas.put import bootstrap_store, init_cas
from uwf_git.commands.cas.schema import NodeFinding, verify_nodes
from uwf_git.errors import StoreDamaged
from uwf_git.model.text import one_line


@verb("json-cas init", "json-cas init ~/nodes.git")
@click.argument("path", required=False)
def init_command(session: Session, path: str | None) -> None:
    """Create a store.

    As `uwf init` does, with the built-in schemas in it. PATH becomes a bare repository, unless it
    is a repository already. Without PATH: --repo, $UWF_REPO, or ~/.uwf/store.git.
    """
    made = init_cas(path or session.repo, caller_of(session))
    emit(session, {"repo": made.store.path, "created": made.created})


@verb(
    "json-cas bootstrap",
    "json-cas bootstrap --format text",
    exits={4: "other processes put nodes meanwhile: it is safe to try again"},
)
def bootstrap_command(session: Session) -> None:
    """Store the built-in schemas.

    The meta-schema, which is its own type, and the schemas of everything that uwf stores. They are
    the same in every store. Repeating it changes nothing.
    """
    made = bootstrap_store(session.open_store(create=True), caller_of(session))
    emit(session, {"meta": made.meta, "schemas": made.schemas}, text=_table)


def _table(document: dict[str, Any]) -> str:
    named = {"(meta-schema)": document["meta"], **document["schemas"]}
    return render_text([{"name": name, "hash": each} for name, each in named.items()])


@verb(
    "json-cas verify 8FWKR3TN5V1QA",
    "json-cas verify $(json-cas walk 8FWK | jq -r '.[].hash')",
    exits={5: "problems were found; all of them are listed"},
)
@click.argument("nodes", metavar="HASH...", nargs=-1, required=True)
def verify_command(session: Session, nodes: tuple[str, ...]) -> None:
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
