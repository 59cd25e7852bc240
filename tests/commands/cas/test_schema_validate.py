import pytest
from cas_nodes import NOWHERE, PERSON, add_unchecked, new_caller, put_person
from fresh_store import fresh_store
from refusing import refuses

from uwf_git.commands.cas import put_schema, validate_node
from uwf_git.model.builtin import META
from uwf_git.store.lookup.lookup import NoSuchNode


def test_node_is_held_against_its_own_type() -> None:
    store = fresh_store()
    schema = put_schema(store, new_caller(), PERSON).hash
    ada = put_person(store, name="Ada")
    wrong = add_unchecked(store, schema, {"name": 5})

    assert validate_node(store, ada) == (schema, ())
    validated = validate_node(store, wrong[:6])
    assert [each.path for each in validated.problems] == ["name"]


def test_invalid_schema_has_problems() -> None:
    store = fresh_store()
    name = add_unchecked(store, META, {"$ref": "#/$defs/gone"})

    problems = validate_node(store, name).problems
    assert [each.message for each in problems] == ["$ref '#/$defs/gone' leads nowhere"]


def test_value_is_held_against_the_schema() -> None:
    store = fresh_store()
    schema = put_schema(store, new_caller(), PERSON).hash

    assert validate_node(store, schema, lambda: {"name": "Ada"}) == (schema, ())
    assert validate_node(store, "Text", lambda: 5).problems != ()


def test_value_is_not_read_without_a_schema() -> None:
    store = fresh_store()
    ada = put_person(store, name="Ada")

    def read() -> None:
        pytest.fail("it was read")

    with refuses("not-a-schema"):
        validate_node(store, ada, read)


def test_node_whose_type_is_missing_cannot_be_checked() -> None:
    store = fresh_store()
    name = add_unchecked(store, NOWHERE, {})

    with pytest.raises(NoSuchNode, match=NOWHERE):
        validate_node(store, name)
