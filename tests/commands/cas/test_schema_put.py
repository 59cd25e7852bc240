import pytest
from cas_nodes import PERSON, new_caller
from fresh_store import fresh_store
from refusing import refuses

from uwf_git.commands.cas.schema import put_schema
from uwf_git.model.builtin import META, TEXT
from uwf_git.store.lookup.lookup import NodeLookup


def test_schema_becomes_a_node_of_the_meta_schema() -> None:
    store = fresh_store()

    put = put_schema(store, new_caller(), PERSON)

    node = NodeLookup(store).get(put.hash)
    assert (put.new, node.type, node.payload) == (True, META, PERSON)


def test_builtin_schema_is_there_already() -> None:
    put = put_schema(fresh_store(), new_caller(), {"type": "string", "title": "Text"})

    assert put == (TEXT, False)


@pytest.mark.parametrize("schema", [True, False, {}])
def test_smallest_schemas_are_schemas(schema: object) -> None:
    assert put_schema(fresh_store(), new_caller(), schema).new


def test_invalid_json_schema_is_refused() -> None:
    with refuses("invalid-payload", match="not a JSON Schema: 1 problem at type"):
        put_schema(fresh_store(), new_caller(), {"type": "strin"})
