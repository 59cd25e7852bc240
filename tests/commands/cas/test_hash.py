from typing import NoReturn

import pytest
from cas_nodes import NOWHERE, PERSON, new_caller
from fresh_store import fresh_store

from uwf_git.commands.cas.put import put_payload
from uwf_git.commands.cas.read import hash_payload
from uwf_git.commands.cas.schema import put_schema
from uwf_git.model.builtin import META_NODE, TEXT
from uwf_git.model.canonical import NotCanonical
from uwf_git.model.digest import typed_hash
from uwf_git.model.names import NotANodeHash


def no_store() -> NoReturn:
    pytest.fail("a store was opened")


@pytest.mark.parametrize("type_text", ["Text", TEXT, TEXT.lower()])
def test_name_is_the_one_that_put_would_give(type_text: str) -> None:
    put = put_payload(fresh_store(), new_caller(), "Text", "hello")

    assert hash_payload(type_text, "hello", open_store=no_store) == put.hash


def test_type_need_not_exist() -> None:
    assert hash_payload(NOWHERE, [1], open_store=no_store) == typed_hash(NOWHERE, [1])


def test_meta_schema_has_no_type() -> None:
    assert hash_payload(None, META_NODE.payload, open_store=no_store) == META_NODE.hash


def test_beginning_of_a_hash_is_looked_up_in_the_store() -> None:
    store = fresh_store()
    schema = put_schema(store, new_caller(), PERSON).hash

    name = hash_payload(schema[:5].lower(), {"name": "Ada"}, open_store=lambda: store)
    assert name == typed_hash(schema, {"name": "Ada"})


@pytest.mark.parametrize(
    ("type_text", "payload", "error"),
    [("person", "a", NotANodeHash), (TEXT, "\ud800", NotCanonical), (None, {1: 2}, NotCanonical)],
)
def test_payload_without_a_name_is_refused(
    type_text: str | None, payload: object, error: type[Exception]
) -> None:
    with pytest.raises(error):
        hash_payload(type_text, payload, open_store=fresh_store)
