"""`json-cas schema put`."""

import click

from uwf_git.cli.app.json_argument import read_json_input
from uwf_git.cli.app.parameters import INPUT, Input
from uwf_git.cli.app.verb import verb
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas.schema import put_schema


@verb(
    "json-cas schema put person.schema.json",
    'echo \'{"title": "Name", "type": "string"}\' | json-cas schema put -',
    exits={
        1: "it is not a JSON Schema; every problem is listed",
        4: "other processes put nodes meanwhile: it is safe to try again",
    },
)
@click.argument("file", type=INPUT)
def command(session: Session, file: Input) -> None:
    """Store a JSON Schema as a node.

    JSON Schema 2020-12. Where a payload refers to another node, its schema says `"format":
    "cas_ref"`; the reference is the hash, or {"$ref": hash}. Repeating it changes nothing.
    """
    schema = read_json_input(file)
    put = put_schema(session.open_store(create=True), caller_of(session), schema)
    emit(session, {"hash": put.hash, "new": put.new}, text=lambda document: document["hash"])
