import pytest
from cas_nodes import PERSON, new_caller

from uwf_git.commands.cas_check import InvalidPayload
from uwf_git.commands.cas_schema_put import put_schema
from uwf_git.model.builtin import META, TEXT
from uwf_git.store.node_lookup import NodeLookup
from uwf_git.store.store import memory_store


def test_schema_becomes_a_node_of_the_meta_schema() -> None:
    store = memory_store()

    put = put_schema(store, new_caller(), PERSON)

    node = NodeLookup(store).get(put.hash)
    assert (put.new, node.type, node.payload) == (True, META, PERSON)


def test_builtin_schema_is_there_already() -> None:
    put = put_schema(memory_store(), new_caller(), {"type": "string", "title": "Text"})

    assert put == (TEXT, False)


@pytest.mark.parametrize("schema", [True, False, {}])
def test_smallest_schemas_are_schemas(schema: object) -> None:
    assert put_schema(memory_store(), new_caller(), schema).new


def test_what_is_no_json_schema_is_refused() -> None:
    with pytest.raises(InvalidPayload, match="not a JSON Schema: 1 problem at type"):
        put_schema(memory_store(), new_caller(), {"type": "strin"})
