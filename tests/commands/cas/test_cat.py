import pytest
from cas_nodes import new_caller, put_person
from fresh_store import fresh_store

from uwf_git.commands.cas import cat_node, put_payload, put_schema


@pytest.mark.parametrize("payload", ["AP8", "no base64!", "é"])
def test_bytes_node_that_is_no_base64_is_its_payload_alone(payload: str) -> None:
    store = fresh_store()
    name = put_payload(store, new_caller(), "Bytes", payload).hash

    assert cat_node(store, name) == (payload, None)


def test_string_of_another_type_is_json_like_everything_else() -> None:
    store = fresh_store()
    schema = put_schema(store, new_caller(), {"title": "Word", "type": "string"}).hash
    word = put_payload(store, new_caller(), schema, "hello").hash

    assert cat_node(store, word) == ("hello", None)
    assert cat_node(store, put_person(store, name="Ada")) == ({"name": "Ada"}, None)
