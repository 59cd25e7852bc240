from cas_nodes import NOWHERE, PERSON, add_misnamed, add_unchecked, new_caller
from fresh_store import fresh_store

from uwf_git.commands.cas import list_schemas, put_payload, put_schema
from uwf_git.model.builtin import BUILTIN_NODES, META

BUILTIN_COUNT = len(BUILTIN_NODES)


def test_others_follow_by_title_and_those_without_come_last() -> None:
    store = fresh_store()
    caller = new_caller()
    person = put_schema(store, caller, PERSON).hash
    unnamed = put_schema(store, caller, {"type": "null"}).hash
    animal = put_schema(store, caller, {"title": "Animal"}).hash
    meta = put_payload(store, caller, None, {"title": "Meta"}).hash

    assert [row[:2] for row in list_schemas(store)[BUILTIN_COUNT:]] == [
        (animal, "Animal"),
        (meta, "Meta"),
        (person, "Person"),
        (unnamed, None),
    ]


def test_other_nodes_are_not_listed() -> None:
    store = fresh_store()
    put_payload(store, new_caller(), "Text", "hello")
    add_unchecked(store, NOWHERE, {"title": "Of no type"})

    assert len(list_schemas(store)) == BUILTIN_COUNT


def test_damaged_node_is_a_row_that_says_so() -> None:
    store = fresh_store()
    add_misnamed(store, NOWHERE, META, {"title": "Wrong"})
    put_schema(store, new_caller(), PERSON)

    person, damaged = list_schemas(store)[BUILTIN_COUNT:]

    assert person.title == "Person"
    assert damaged[:3] == (NOWHERE, None, False)
    assert (damaged.problem or "").startswith(f"node {NOWHERE} holds other content")
