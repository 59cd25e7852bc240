from typing import Any

import pytest
from cas_nodes import NOWHERE, TWINS, add_misnamed, hand_over, new_caller
from fresh_store import fresh_store
from refusing import refuses

from uwf_git.commands.cas import put_payload, put_schema
from uwf_git.model.builtin import META, TEXT
from uwf_git.model.names import NodeHash, NotANodeHash
from uwf_git.model.node import Node, NotCanonical, self_typed_hash, typed_hash
from uwf_git.store.lookup.lookup import NODES_REF, NodeLookup, NoSuchNode, list_nodes
from uwf_git.store.store import Store

THREAD = "refs/threads/01J00000000000000000000001"


def get(store: Store, name: NodeHash) -> Node:
    return NodeLookup(store).get(name)


def test_node_that_a_thread_keeps_is_not_new_but_is_kept_from_now_on() -> None:
    store = fresh_store()
    name = put_payload(store, new_caller(), "Text", "hello").hash
    hand_over(store, THREAD)

    assert put_payload(store, new_caller(), "Text", "hello") == (name, False)
    assert name in set(list_nodes(store))


def test_meta_schema_is_its_own_type_and_can_have_schemas() -> None:
    store = fresh_store()
    caller = new_caller()
    meta = put_payload(store, caller, None, {"title": "Meta", "type": "object"})
    schema = put_payload(store, caller, meta.hash, {"type": "string"}).hash
    word = put_payload(store, caller, schema, "hello").hash

    assert meta == (self_typed_hash({"title": "Meta", "type": "object"}), True)
    assert get(store, meta.hash).is_self_typed
    assert get(store, word).type == schema


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ({"type": "strin"}, "not a JSON Schema"),
        ("object", "not a JSON Schema"),
        ({"type": "string"}, "at the top: {'type': 'string'} is not of type 'string'"),
    ],
)
def test_invalid_meta_schema_is_refused(payload: Any, told: str) -> None:
    store = fresh_store()

    with refuses("invalid-payload", match=told):
        put_payload(store, new_caller(), None, payload)
    assert store.refs.find(NODES_REF) is None


@pytest.mark.parametrize(
    ("type_text", "payload", "error"),
    [
        ("Text", 5, "invalid-payload"),
        ("Role", {"name": "a"}, "invalid-payload"),
        (META, {"type": "strin"}, "invalid-payload"),
        ("Text", "\ud800", NotCanonical),
        ("Text", float("nan"), NotCanonical),
        (NOWHERE, "hello", NoSuchNode),
        ("8FWK", "hello", NoSuchNode),
        ("person", "hello", NotANodeHash),
    ],
)
def test_refused_payload_stores_nothing(
    type_text: str, payload: Any, error: str | type[Exception]
) -> None:
    store = fresh_store()

    with refuses(error):
        put_payload(store, new_caller(), type_text, payload)
    assert store.refs.find(NODES_REF) is None


def test_reference_that_only_a_schema_below_a_choice_declares_counts() -> None:
    store = fresh_store()
    choice = {"oneOf": [{"type": "null"}, {"type": "string", "format": "cas_ref"}]}
    schema = put_schema(store, new_caller(), {"properties": {"friend": choice}}).hash

    with refuses("dangling-references", match=NOWHERE):
        put_payload(store, new_caller(), schema, {"friend": NOWHERE})
    assert put_payload(store, new_caller(), schema, {"friend": None}).new


def test_ref_inside_a_schema_is_no_reference() -> None:
    schema = {"$defs": {"a": {"type": "string"}}, "$ref": "#/$defs/a"}

    assert put_schema(fresh_store(), new_caller(), schema).new


def test_other_content_with_the_same_name_is_refused_and_never_an_alias() -> None:
    store = fresh_store()
    name = put_payload(store, new_caller(), "Text", TWINS[0]).hash
    hand_over(store, THREAD)
    assert typed_hash(TEXT, TWINS[1]) == name

    with refuses("node-collision", match=name):
        put_payload(store, new_caller(), "Text", TWINS[1])
    assert get(store, name).payload == TWINS[0]
    assert store.refs.find(NODES_REF) is None


def test_copy_that_is_spoiled_elsewhere_does_not_keep_a_whole_one_out() -> None:
    store = fresh_store()
    name = typed_hash(TEXT, "hello")
    add_misnamed(store, name, TEXT, "spoiled")
    hand_over(store, THREAD)

    assert put_payload(store, new_caller(), "Text", "hello") == (name, True)
    assert get(store, name).payload == "hello"
