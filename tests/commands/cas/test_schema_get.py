from cas_nodes import PERSON, new_caller
from fresh_store import fresh_store
from refusing import refuses

from uwf_git.commands.cas.put import put_payload
from uwf_git.commands.cas.schema import get_schema_payload, put_schema


def test_schema_comes_back_as_it_was_put() -> None:
    store = fresh_store()
    name = put_schema(store, new_caller(), PERSON).hash

    assert get_schema_payload(store, name[:6].lower()) == PERSON


def test_builtin_schema_has_a_name() -> None:
    assert get_schema_payload(fresh_store(), "Text") == {"title": "Text", "type": "string"}


def test_node_of_another_kind_is_refused() -> None:
    store = fresh_store()
    name = put_payload(store, new_caller(), "Text", "hello").hash

    with refuses("not-a-schema"):
        get_schema_payload(store, name)
