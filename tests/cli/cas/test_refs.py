import json
from collections.abc import Callable

from cas_nodes import NOWHERE, PERSON, add_unchecked, new_caller, put_person
from cli.ran import Ran

from uwf_git.commands.cas import put_payload, put_schema
from uwf_git.model.builtin import META, TEXT
from uwf_git.store.store import Store

Cas = Callable[..., Ran]


def test_rows_tell_what_is_referred_to(cas: Cas, store: Store) -> None:
    note = put_payload(store, new_caller(), "Text", "hello").hash
    ada = put_person(store, name="Ada", note={"$ref": note})

    ran = cas("refs", ada)

    schema, text = json.loads(ran.out)
    assert ran.status == 0
    assert (schema["as"], schema["typeName"], schema["summary"]) == (
        "type",
        "JSON Schema",
        "Person",
    )
    assert text == {
        "as": "payload",
        "hash": note,
        "type": TEXT,
        "typeName": "Text",
        "summary": "hello",
    }


def test_missing_part_is_reported_and_the_status_says_so(cas: Cas, store: Store) -> None:
    schema = put_schema(store, new_caller(), PERSON).hash
    ada = add_unchecked(store, schema, {"name": "Ada", "friend": NOWHERE})

    ran = cas("refs", ada, "--format", "text")

    assert ran.status == 5
    told = f"payload  {NOWHERE}  ! there is no node {NOWHERE} in this store"
    assert ran.out.splitlines()[1] == told


def test_meta_schema_refers_to_nothing(cas: Cas) -> None:
    assert cas("refs", META) == Ran(0, "[]\n", "")
    assert cas("refs", META, "--format", "text") == Ran(0, "", "")
