import pytest
from cas_nodes import NOWHERE, add_unchecked, put_person
from fresh_store import fresh_store

from uwf_git.commands.cas import list_references
from uwf_git.model.builtin import TEXT
from uwf_git.store.lookup.lookup import NoSuchNode


def test_type_comes_first_and_then_the_payload_in_its_order() -> None:
    store = fresh_store()
    note = add_unchecked(store, TEXT, "hello")
    ada = put_person(store, name="Ada")
    bob = put_person(store, note={"$ref": note}, name="Bob", friend=ada)

    told = [
        (each.as_type, each.target.type_name, each.target.summary)
        for each in list_references(store, bob[:6].lower())
    ]
    assert told == [
        (True, "JSON Schema", "Person"),
        (False, "Text", "hello"),
        (False, "Person", "Ada"),
    ]


def test_missing_node_is_refused() -> None:
    with pytest.raises(NoSuchNode):
        list_references(fresh_store(), NOWHERE)
