from cas_nodes import PERSON, new_caller
from fresh_store import fresh_store

from uwf_git.commands.cas import hash_payload, put_schema
from uwf_git.model.node import typed_hash


def test_beginning_of_a_hash_is_looked_up_in_the_store() -> None:
    store = fresh_store()
    schema = put_schema(store, new_caller(), PERSON).hash

    name = hash_payload(schema[:5].lower(), {"name": "Ada"}, open_store=lambda: store)
    assert name == typed_hash(schema, {"name": "Ada"})
