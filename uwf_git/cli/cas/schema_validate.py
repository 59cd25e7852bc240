"""`json-cas schema validate`."""

from typing import Any

import click

from uwf_git.cli.app.json_argument import read_json_input
from uwf_git.cli.app.parameters import INPUT, Input
from uwf_git.cli.app.verb import verb
from uwf_git.cli.cas.node_lines import problem_document
from uwf_git.cli.output.render import emit
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas.schema import validate_node
from uwf_git.model.text import one_line


@verb(
    "json-cas schema validate 8FWKR3TN5V1QA",
    "json-cas schema validate FPCV6GD73KKKB person.json",
    exits={1: "it is not valid, and every problem is listed; or it could not be checked"},
)
@click.argument("node", metavar="HASH")
@click.argument("file", type=INPUT, required=False)
def command(session: Session, node: str, file: Input | None) -> None:
    """Check a node against its schema.

    With FILE, HASH is a schema, or the name of a built-in one (Text), and the JSON in FILE is
    checked against it; nothing is stored.
    """
    read_value = None if file is None else lambda: read_json_input(file)
    validated = validate_node(session.open_store(), node, read_value)
    document = {
        "schema": validated.schema,
        "valid": not validated.problems,
        "problems": [problem_document(each) for each in validated.problems],
    }
    emit(session, document, text=_text)
    if validated.problems:
        raise click.exceptions.Exit(1)


def _text(document: dict[str, Any]) -> str:
    if document["valid"]:
        return "valid"
    return "\n".join(
        one_line(f"{each['path'] or 'the top'}: {each['message']}") for each in document["problems"]
    )
