import json
from collections.abc import Callable
from pathlib import Path

from cas_nodes import PERSON, add_unchecked, new_caller, put_person
from cli.ran import Ran

from uwf_git.commands.cas import put_schema
from uwf_git.store.store import Store

Cas = Callable[..., Ran]


def test_node_that_is_valid(cas: Cas, store: Store) -> None:
    schema = put_schema(store, new_caller(), PERSON).hash
    ada = put_person(store, name="Ada")

    ran = cas("schema", "validate", ada[:6].lower())

    assert ran.status == 0
    assert json.loads(ran.out) == {"schema": schema, "valid": True, "problems": []}
    assert cas("schema", "validate", ada, "--format", "text") == Ran(0, "valid\n", "")


def test_node_that_is_not(cas: Cas, store: Store) -> None:
    schema = put_schema(store, new_caller(), PERSON).hash
    ada = add_unchecked(store, schema, {"name": 5})

    ran = cas("schema", "validate", ada)

    assert ran.status == 1
    assert json.loads(ran.out) == {
        "schema": schema,
        "valid": False,
        "problems": [{"path": "name", "message": "5 is not of type 'string'"}],
    }


def test_value_from_a_file(cas: Cas, store: Store, tmp_path: Path) -> None:
    schema = put_schema(store, new_caller(), PERSON).hash
    file = tmp_path / "ada.json"
    file.write_text('{"name": "Ada"}')

    assert cas("schema", "validate", schema, str(file)).status == 0
    ran = cas("schema", "validate", schema, "-", "--format", "text", fed=b'{"a": 1, "name": 2}')
    assert (ran.status, ran.err) == (1, "")
    assert ran.out == (
        "name: 2 is not of type 'string'\n"
        "the top: Additional properties are not allowed ('a' was unexpected)\n"
    )
