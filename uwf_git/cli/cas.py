"""`json-cas`: its verbs on nodes and schemas, and the table of them."""

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn

import click

from uwf_git.cli.app.lazy_group import LazyGroup, own, run, version_option
from uwf_git.cli.app.parameters import Input, InputPath, read_json_input, with_options
from uwf_git.cli.app.verb import verb
from uwf_git.cli.caller import caller_of
from uwf_git.cli.output.screen import (
    emit,
    limit_option,
    render_json,
    render_text,
    shorten,
    wide_option,
    without_none,
)
from uwf_git.cli.session import Session, leave, stdout_is_utf8, write_bytes, write_stdout
from uwf_git.commands import cas
from uwf_git.errors import BadUsage, StoreDamaged
from uwf_git.model.builtin import META
from uwf_git.model.text import one_line, render_time, visible_block, visible_line
from uwf_git.surroundings import speak_utf8

# Nodes as lines and documents, for several verbs.


def row_document(row: cas.NodeRow) -> dict[str, Any]:
    """Return the document of a row; `problem` is there only if there is one."""
    document = {
        "hash": row.hash,
        "type": row.type,
        "typeName": row.type_name,
        "summary": row.summary,
        "problem": row.problem,
    }
    return without_none(document, "problem")


def payload_text(payload: Any) -> str:
    """Format a payload for people: text as it is, everything else as JSON on several lines."""
    return payload if isinstance(payload, str) else render_json(payload, pretty=True)


# The arguments `[TYPE] FILE` of `put` and `hash`: a payload from a file, and its type.

_FILE = InputPath("put its parts as nodes of their own, and a node that refers to them")


class TypedPayload(NamedTuple):
    """A payload named on the command line, not yet read."""

    type_text: str | None
    """The type as it was typed; None for a meta-schema."""

    source: Input
    as_text: bool

    def read(self) -> Any:
        """Read the payload."""
        # Exact: what is stored is printed unchanged.
        source = self.source
        return source.read_text(is_exact=True) if self.as_text else read_json_input(source)


def _understand(given: dict[str, Any]) -> None:
    typed, as_text, is_meta = given.pop("words"), given.pop("as_text"), given.pop("self_typed")
    wanted, most = ("FILE alone with --self", 1) if is_meta else ("TYPE and FILE", 2)
    if len(typed) != most:
        path = click.get_current_context().command_path
        words = {0: "no words", 1: "1 word"}.get(len(typed), f"{len(typed)} words")
        raise BadUsage(
            f"{path} takes {wanted}, not {words}",
            code="wrong-words",
            hint="FILE may be `-`, standard input; `json-cas schema list` names the types; "
            f"`{path} --help` shows how it is typed",
            given=len(typed),
        )
    given["given"] = TypedPayload(None if is_meta else typed[0].path, typed[-1], as_text)


typed_payload = with_options(
    _understand,
    click.argument("words", nargs=-1, type=_FILE, metavar="[TYPE] FILE"),
    click.option(
        "--self", "self_typed", is_flag=True, help="A meta-schema, which is its own type: no TYPE."
    ),
    click.option(
        "--text", "as_text", is_flag=True, help="FILE is text: the payload is a string of it."
    ),
)
"""Add the argument ``given: TypedPayload`` to a verb, from its arguments and options."""


@verb("json-cas get 8FWKR3TN5V1QA", "json-cas get 8fwk --format text")
@click.argument("node", metavar="HASH")
def get_command(session: Session, node: str) -> None:
    """Print a node.

    Its type, its payload, and when it was first written, in milliseconds since 1970. HASH may be
    any unique beginning, in upper or lower case. Threads, workflows and nodes put by hand are
    searched.
    """
    found, type_name = cas.get_node(session.open_store(), node)
    name = "" if type_name is None else f" ({type_name})"
    written = render_time(found.timestamp) if found.timestamp else "never: it is built in"
    head = f"node: {found.hash}\ntype: {found.type}{name}\nwritten: {written}\n\n"
    emit(session, found._asdict(), text=lambda _document: head + payload_text(found.payload))


@verb("json-cas cat 8FWKR3TN5V1QA", "json-cas cat 8FWKR3TN5V1QA > reply.md")
@click.argument("node", metavar="HASH")
def cat_command(session: Session, node: str) -> None:
    """Print only the payload of a node.

    Text and bytes are printed byte for byte as they were stored; on a terminal, controls are
    escaped. Everything else is JSON, on several lines.
    """
    content = cas.cat_node(session.open_store(), node)
    if content.raw is not None:
        if session.stdout_is_tty:
            write_stdout(visible_block(content.raw.decode(errors="backslashreplace")))
        else:
            write_bytes(content.raw)
    elif session.output_format == "json":
        ascii_only = not stdout_is_utf8()
        write_stdout(render_json(content.payload, pretty=True, ascii_only=ascii_only))
    else:
        emit(session, content.payload, text=payload_text)


@verb(
    "json-cas has 8FWKR3TN5V1QA",
    "json-cas has 8FWKR3TN5V1QA > /dev/null && echo yes",
    exits={0: "it is in the store", 1: "it is not, or the prefix is ambiguous"},
)
@click.argument("node", metavar="HASH")
def has_command(session: Session, node: str) -> None:
    """Check whether a node is in the store."""
    presence = cas.has_node(session.open_store(), node)
    told = "yes" if presence.exists else "no"
    emit(session, presence._asdict(), text=lambda _document: told)
    if not presence.exists:
        raise click.exceptions.Exit(1)


@verb("json-cas refs 8FWKR3TN5V1QA", exits={5: "a node among them is missing or damaged"})
@click.argument("node", metavar="HASH")
@wide_option
def refs_command(session: Session, *, node: str, wide: bool) -> None:
    """List the nodes that a node refers to.

    Its type first, then those in its payload, in their order there.
    """
    references = cas.list_references(session.open_store(), node)
    rows = [
        {"as": "type" if each.as_type else "payload", **row_document(each.target)}
        for each in references
    ]
    width = None if wide else session.text_width()
    emit(
        session,
        rows,
        text=lambda rows: "".join(_line(f"{row['as']:7}  ", row, width) for row in rows),
    )
    if any(each.target.problem for each in references):
        raise click.exceptions.Exit(StoreDamaged.exit_status)


def _line(before: str, row: dict[str, Any], width: int | None) -> str:
    words = f"{row['typeName'] or row['type']}  {row['summary']}".rstrip()
    words = f"! {row['problem']}" if "problem" in row else words
    return shorten(visible_line(f"{before}{row['hash']}  {words}"), width) + "\n"


# A thread of a thousand steps is a thousand levels deep: no screen is that wide.
_DEEPEST = 20


@verb(
    "json-cas walk 8FWKR3TN5V1QA --format text",
    exits={5: "a node on the way is missing or damaged"},
)
@click.argument("node", metavar="HASH")
@wide_option
def walk_command(session: Session, *, node: str, wide: bool) -> None:
    """List every node that can be reached from a node.

    Breadth first, each node once, with its depth and the node that first referred to it. With
    --format text: indented below that node.
    """
    reached = cas.walk_nodes(session.open_store(), node)
    rows = [
        {"depth": each.depth, "parent": each.parent, **row_document(each.node)} for each in reached
    ]
    width = None if wide else session.text_width()
    emit(session, rows, text=lambda rows: "".join(_lines(rows, width)))
    if any(each.node.problem for each in reached):
        raise click.exceptions.Exit(StoreDamaged.exit_status)


def _lines(rows: list[dict[str, Any]], width: int | None) -> Iterator[str]:
    below: dict[str | None, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        below[row["parent"]].append(row)
    waiting = below[None][::-1]
    while waiting:
        row = waiting.pop()
        depth = row["depth"]
        indent = "  " * depth if depth <= _DEEPEST else "  " * _DEEPEST + f"[{depth}] "
        yield _line(indent, row, width)
        waiting += reversed(below[row["hash"]])


@verb(
    "json-cas put FPCV6GD73KKKB person.json",
    "json-cas put Text --text notes.md",
    'echo \'{"name": "Ada"}\' | json-cas put FPCV6G -',
    exits={
        1: "the payload breaks its schema, or refers to what is not there; nothing is stored",
        4: "other processes put nodes meanwhile: it is safe to try again",
    },
)
@typed_payload
def put_command(session: Session, given: TypedPayload) -> None:
    """Store a JSON value as a node.

    TYPE is a schema: its hash, the beginning of it, or the name of a built-in one (Text). The
    payload must be valid, and every node that it refers to must be in the store. All that the node
    reaches is kept with it, so that git's gc does not remove it. FILE has at most 16 MiB. Repeating
    it changes nothing.
    """
    payload = given.read()
    put = cas.put_payload(
        session.open_store(create=True), caller_of(session), given.type_text, payload
    )
    emit(session, put._asdict(), text=lambda document: document["hash"])


@verb(
    "json-cas hash Text --text notes.md",
    "json-cas hash --self meta-schema.json",
)
@typed_payload
def hash_command(session: Session, given: TypedPayload) -> None:
    """Print the hash that a value would have, storing nothing.

    TYPE need not exist, and no store is needed unless TYPE is the beginning of a hash. The payload
    is not checked against its schema.
    """
    name = cas.hash_payload(given.type_text, given.read(), open_store=session.open_store)
    emit(session, {"hash": name}, text=lambda document: document["hash"])


# `json-cas schema` verbs.


@verb("json-cas schema get FPCV6GD73KKKB", "json-cas schema get StepNode --format yaml")
@click.argument("schema", metavar="HASH")
def schema_get_command(session: Session, schema: str) -> None:
    """Print a JSON Schema.

    HASH may be any unique beginning, or the name of a built-in schema (Text).
    """
    emit(session, cas.get_schema_payload(session.open_store(), schema), text=payload_text)


@verb("json-cas schema list", "json-cas schema list --limit 5 --format text")
@limit_option()
@wide_option
def schema_list_command(session: Session, *, limit: int | None, wide: bool) -> None:
    """List the schemas.

    The built-in ones, then those that were put by hand, by title. The schemas inside workflows
    are not listed; `uwf workflow show` names them.
    """
    rows = cas.list_schemas(session.open_store(create=True), limit=limit)
    shown = [
        {"hash": row.hash, "title": row.problem or row.title, "builtin": row.builtin}
        for row in rows
    ]
    width = None if wide else session.text_width()
    emit(
        session,
        [without_none(row._asdict(), "problem") for row in rows],
        text=lambda _document: render_text(shown, width=width),
    )


@verb(
    "json-cas schema put person.schema.json",
    'echo \'{"title": "Name", "type": "string"}\' | json-cas schema put -',
    exits={
        1: "it is not a JSON Schema; every problem is listed",
        4: "other processes put nodes meanwhile: it is safe to try again",
    },
)
@click.argument("file", type=_FILE)
def schema_put_command(session: Session, file: Input) -> None:
    """Store a JSON Schema as a node.

    JSON Schema 2020-12. Where a payload refers to another node, its schema says `"format":
    "cas_ref"`; the reference is the hash, or {"$ref": hash}. Repeating it changes nothing.
    """
    schema = read_json_input(file)
    put = cas.put_schema(session.open_store(create=True), caller_of(session), schema)
    emit(session, put._asdict(), text=lambda document: document["hash"])


@verb(
    "json-cas schema validate 8FWKR3TN5V1QA",
    "json-cas schema validate FPCV6GD73KKKB person.json",
    exits={1: "it is not valid, and every problem is listed; or it could not be checked"},
)
@click.argument("node", metavar="HASH")
@click.argument("file", type=_FILE, required=False)
def schema_validate_command(session: Session, node: str, file: Input | None) -> None:
    """Check a node against its schema.

    With FILE, HASH is a schema, or the name of a built-in one (Text), and the JSON in FILE is
    checked against it; nothing is stored.
    """
    read_value = None if file is None else lambda: read_json_input(file)
    validated = cas.validate_node(session.open_store(), node, read_value)
    document = {
        "schema": validated.schema,
        "valid": not validated.problems,
        "problems": [{"path": path, "message": told} for path, told, *_ in validated.problems],
    }
    emit(session, document, text=_schema_text)
    if validated.problems:
        raise click.exceptions.Exit(1)


def _schema_text(document: dict[str, Any]) -> str:
    if document["valid"]:
        return "valid"
    return "\n".join(
        one_line(f"{each['path'] or 'the top'}: {each['message']}") for each in document["problems"]
    )


# `json-cas` verbs on a store: init, bootstrap, verify.


@verb("json-cas init", "json-cas init ~/nodes.git")
@click.argument("path", required=False)
def init_command(session: Session, path: str | None) -> None:
    """Create a store.

    As `uwf init` does, with the built-in schemas in it. PATH becomes a bare repository, unless it
    is a repository already. Without PATH: --repo, $UWF_REPO, or ~/.uwf/store.git.
    """
    made = cas.init_cas(path or session.repo, caller_of(session))
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
    cas.bootstrap_store(session.open_store(create=True), caller_of(session))
    emit(session, {"meta": META, "schemas": dict(cas.BUILTIN_TYPES)}, text=_store_table)


def _store_table(document: dict[str, Any]) -> str:
    return render_text([{"name": name, "hash": each} for name, each in document["schemas"].items()])


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
    verified = cas.verify_nodes(session.open_store(), list(nodes))
    document = {
        "ok": not verified.findings,
        "checked": list(verified.checked),
        "problems": [without_none(each._asdict()) for each in verified.findings],
    }
    emit(session, document, text=_store_text)
    if verified.findings:
        raise click.exceptions.Exit(StoreDamaged.exit_status)


def _store_text(document: dict[str, Any]) -> str:
    if document["ok"]:
        count = len(document["checked"])
        return "ok: 1 node" if count == 1 else f"ok: {count} nodes"
    return "\n".join(
        one_line(": ".join(filter(None, map(each.get, ("node", "ref", "path", "message")))))
        for each in document["problems"]
    )


# `json-cas`: the table of its commands.

SCHEMA = LazyGroup(
    "schema",
    {
        "put": own("cas:schema_put_command", "Store a JSON Schema as a node"),
        "get": own("cas:schema_get_command", "Print a JSON Schema"),
        "list": own("cas:schema_list_command", "List the schemas"),
        "validate": own("cas:schema_validate_command", "Check a node against its schema"),
    },
    help_text="Store and inspect schemas, the types of nodes.",
    examples=["json-cas schema put person.schema.json"],
)

JSON_CAS = LazyGroup(
    "json-cas",
    {
        "init": own("cas:init_command", "Create a store"),
        "bootstrap": own("cas:bootstrap_command", "Store the built-in schemas"),
        "schema": SCHEMA,
        "put": own("cas:put_command", "Store a JSON value as a node"),
        "get": own("cas:get_command", "Print a node"),
        "has": own("cas:has_command", "Check whether a node is in the store"),
        "hash": own("cas:hash_command", "Print the hash that a value would have, storing nothing"),
        "cat": own("cas:cat_command", "Print only the payload of a node"),
        "refs": own("cas:refs_command", "List the nodes that a node refers to"),
        "walk": own("cas:walk_command", "List every node that can be reached from a node"),
        "verify": own("cas:verify_command", "Check nodes against their names"),
    },
    help_text="Store and read content-addressed JSON nodes, in the store that uwf uses.\n\n"
    "A node's name is a hash of its type and its content; any unique beginning of it is enough.",
    examples=["json-cas get 8FWKR3TN5V1QA"],
)
JSON_CAS.params.insert(0, version_option())


def main() -> int:
    """Run `json-cas` with the command line and the environment of this process."""
    return run(JSON_CAS, sys.argv[1:], prog="json-cas", environ=dict(os.environ))


def program() -> NoReturn:
    """Run `json-cas` as the whole process."""
    speak_utf8()
    leave(main())
