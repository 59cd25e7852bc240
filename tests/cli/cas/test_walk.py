import json
from collections.abc import Callable

import pytest
from cas_nodes import NOWHERE, PERSON, add_unchecked, new_caller, put_person
from cli.ran import Ran

from uwf_git.cli.app.lazy_group import run
from uwf_git.cli.json_cas import JSON_CAS
from uwf_git.cli.session.settings import Session
from uwf_git.commands.cas import put_payload, put_schema
from uwf_git.model.names import NodeHash
from uwf_git.model.node import build_node
from uwf_git.store.lookup.lookup import put_nodes
from uwf_git.store.store import Store

Cas = Callable[..., Ran]


def test_rows_have_depth_and_parent(cas: Cas, store: Store) -> None:
    ada = put_person(store, name="Ada")
    bob = put_person(store, name="Bob", friend=ada)

    rows = json.loads(cas("walk", bob[:6]).out)

    assert [(row["depth"], row["parent"], row["summary"]) for row in rows] == [
        (0, None, "Bob"),
        (1, bob, "Person"),
        (1, bob, "Ada"),
        (2, rows[1]["hash"], "JSON Schema"),
    ]


def test_tree_of_a_long_chain_stays_on_the_screen(cas: Cas, store: Store) -> None:
    schema = put_schema(store, new_caller(), PERSON).hash
    people = [build_node(schema, {"name": "p0"}, timestamp=0)]
    for number in range(1, 40):
        fields = {"name": f"p{number}", "friend": people[-1].hash}
        people.append(build_node(schema, fields, timestamp=0))
    put_nodes(store, people, new_caller().signing(store))

    lines = cas("walk", people[-1].hash, "--format", "text").out.splitlines()

    assert lines[-1] == f"{'  ' * 20}[39] {people[0].hash}  Person  p0"
    assert max(map(len, lines)) < 80


def test_lines_are_cut_to_the_terminal(
    store: Store, session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    note = put_payload(store, new_caller(), "Text", "x" * 300).hash
    environ = {**session.environ, "COLUMNS": "40"}
    at_terminal = session._replace(
        repo=store.path, output_format="text", stdout_is_tty=True, environ=environ
    )

    run(JSON_CAS, ["walk", note], prog="json-cas", environ=environ, session=at_terminal)

    first = capsys.readouterr().out.splitlines()[0]
    assert (len(first), first[-1]) == (40, "…")


def test_missing_part_is_reported_and_the_status_says_so(cas: Cas, store: Store) -> None:
    schema = put_schema(store, new_caller(), PERSON).hash
    ada: NodeHash = add_unchecked(store, schema, {"name": "Ada", "friend": NOWHERE})

    ran = cas("walk", ada, "--format", "text")

    assert ran.status == 5
    told = f"  {NOWHERE}  ! there is no node {NOWHERE} in this store"
    assert ran.out.splitlines()[-1] == told


@pytest.mark.parametrize("words", [("refs",), ("walk",), ("schema", "list")])
def test_wide_text_is_not_cut(
    words: tuple[str, ...], cas: Callable[..., Ran], store: Store, session: Session
) -> None:
    long = put_schema(store, new_caller(), {"title": "x" * 60}).hash
    named = () if "list" in words else (put_payload(store, new_caller(), long, 1).hash,)
    there = session._replace(stdout_is_tty=True, environ={**session.environ, "COLUMNS": "40"})

    brief, wide = (
        cas(*words, *named, "--format", "text", *more, there=there).out
        for more in ((), ("--wide",))
    )

    assert max(map(len, brief.splitlines())) <= 40
    assert "x" * 60 in wide
