"""`json-cas schema` verbs."""

from typing import Any

import click

from uwf_git.cli.app.json_argument import read_json_input
from uwf_git.cli.app.parameters import INPUT, Input
from uwf_git.cli.app.verb import verb
from uwf_git.cli.cas.nodes import payload_text, problem_document
from uwf_git.cli.output.render import emit
from uwf_git.cli.output.table import limit_option, render_text, wide_option
from uwf_git.cli.session.caller import caller_of
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas.schema import (
    SchemaRow,
    get_schema_payload,
    list_schemas,
    put_schema,
    validate_node,
)
from uwf_git.model.text import one_line


@verb("json-cas schema get FPCV6GD73KKKB", "json-cas schema get StepNode --format yaml")
@click.argument("schema", metavar="HASH")
def schema_get_command(session: Session, schema: str) -> None:
    """Print a JSON Schema.

    HASH may be any unique beginning, or the name of a built-in schema (Text).
    """
    emit(session, get_schema_payload(session.open_store(), schema), text=payload_text)


@verb("json-cas schema list", "json-cas schema list --limit 5 --format text")
@limit_option()
@wide_option
def schema_list_command(session: Session, *, limit: int | None, wide: bool) -> None:
    """List the schemas.

    The built-in ones, then those that were put by hand, by title. The schemas inside workflows
    are not listed; `uwf workflow show` names them.
    """
    rows = list_schemas(session.open_store(create=True), limit=limit)
    width = None if wide else session.text_width()
    emit(session, [_document(row) for row in rows], text=lambda rows: _table(rows, width))


def _document(row: SchemaRow) -> dict[str, Any]:
    document = {"hash": row.hash, "title": row.title, "builtin": row.builtin}
    return document if row.problem is None else {**document, "problem": row.problem}


def _table(rows: list[dict[str, Any]], width: int | None) -> str:
    shown = [
        {
            "hash": row["hash"],
            "title": row.get("problem", row["title"]),
            "builtin": row["builtin"],
        }
        for row in rows
    ]
    return render_text(shown, width=width)


@verb(
    "json-cas schema put person.schema.json",
    'echo \'{"title": "Name", "type": "string"}\' | json-cas schema put -',
    exits={
        1: "it is not a JSON Schema; every problem is listed",
        4: "other processes put nodes meanwhile: it is safe to try again",
    },
)
@click.argument("file", type=INPUT)
def schema_put_command(session: Session, file: Input) -> None:
    """Store a JSON Schema as a node.

    JSON Schema 2020-12. Where a payload refers to another node, its schema says `"format":
    "cas_ref"`; the reference is the hash, or {"$ref": hash}. Repeating it changes nothing.
    """
    schema = read_json_input(file)
    put = put_schema(session.open_store(create=True), caller_of(session), schema)
    emit(session, {"hash": put.hash, "new": put.new}, text=lambda document: document["hash"])


@verb(
    "json-cas schema validate 8FWKR3TN5V1QA",
    "json-cas schema validate FPCV6GD73KKKB person.json",
    exits={1: "it is not valid, and every problem is listed; or it could not be checked"},
)
@click.argument("node", metavar="HASH")
@click.argument("file", type=INPUT, required=False)
def schema_validate_command(session: Session, node: str, file: Input | None) -> None:
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
