import time
from typing import Any

import pytest
from cas_nodes import (
    ENDLESS,
    NOWHERE,
    PERSON,
    SIGNING,
    TWINS,
    add_misnamed,
    add_notes,
    add_unchecked,
    hand_over,
    new_caller,
    put_person,
)
from fresh_store import fresh_store
from refusing import raising, refuses

from uwf_git.commands.cas import (
    BUILTIN_TYPES,
    cat_node,
    check_payload,
    find_problems,
    get_node,
    has_node,
    hash_payload,
    keep_node,
    list_references,
    list_schemas,
    put_payload,
    put_schema,
    summarize,
    validate_node,
    verify_nodes,
    walk_nodes,
)
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.builtin import BUILTIN, BUILTIN_NODES, META, META_NODE, TEXT
from uwf_git.model.names import NodeHash, NotANodeHash
from uwf_git.model.node import Node, NotCanonical, build_node, typed_hash
from uwf_git.store.lookup import NODES_REF, NodeLookup, NoSuchNode, list_nodes, open_root, put_nodes
from uwf_git.store.store import Store


@pytest.mark.parametrize("payload", ["AP8", "no base64!", "é"])
def test_bytes_node_that_is_no_base64_is_its_payload_alone(payload: str, store: Store) -> None:
    name = put_payload(store, new_caller(), "Bytes", payload).hash

    assert cat_node(store, name) == (payload, None)


def test_string_of_another_type_is_json_like_everything_else(store: Store) -> None:
    schema = put_schema(store, new_caller(), {"title": "Word", "type": "string"}).hash
    word = put_payload(store, new_caller(), schema, "hello").hash

    assert cat_node(store, word) == ("hello", None)
    assert cat_node(store, put_person(store, name="Ada")) == ({"name": "Ada"}, None)


def schema_node(schema: Any) -> Node:
    return build_node(META, schema, timestamp=0)


@pytest.mark.parametrize(
    "schema",
    [{"type": "strin"}, {"$ref": "#/$defs/gone"}, {"pattern": "("}, [], "object", {"format": 1}],
)
@pytest.mark.parametrize("meta", [META_NODE, build_node(None, {}, timestamp=0)])
def test_payload_of_a_meta_schema_has_to_be_a_json_schema(meta: Node, schema: Any) -> None:
    with refuses("invalid-payload", match="this is not a JSON Schema: 1 problem at "):
        check_payload(meta, schema)


def test_schema_deeper_than_the_quick_check_is_still_checked() -> None:
    schema: Any = {"type": "string"}
    payload: Any = "deep"
    for _level in range(200):
        schema, payload = {"type": "array", "items": schema}, [payload]

    told = [each.message for each in find_problems(schema_node(schema), payload)]
    assert told in ([], ["it is nested too deeply to be checked"])


def test_check_that_would_take_for_ever_is_stopped() -> None:
    began = time.process_time()

    with pytest.raises(Refused, match="the check against the schema took too much time"):
        check_payload(schema_node(ENDLESS), "a" * 100 + "b")
    assert time.process_time() - began < 5


def test_node_that_is_another_than_its_name_says_is_never_given(store: Store) -> None:
    add_misnamed(store, NOWHERE, TEXT, "wrong")

    with pytest.raises(StoreDamaged, match="holds other content"):
        get_node(store, NOWHERE)


@pytest.mark.parametrize(
    ("text", "asked"), [(NOWHERE.lower(), NOWHERE), ("8fwk", "8FWK"), ("8FWKR3TN5VIQA", NOWHERE)]
)
def test_node_that_no_ref_keeps_is_not(text: str, asked: str) -> None:
    assert has_node(fresh_store(), text) == (asked, False)


def test_word_that_means_several_is_refused(store: Store) -> None:
    add_notes(store, 40)

    with refuses("ambiguous-node"):
        has_node(store, "0")


def test_beginning_of_a_hash_alone_is_looked_up_in_the_store(store: Store) -> None:
    schema = put_schema(store, new_caller(), PERSON).hash

    name = hash_payload(schema[:5].lower(), {"name": "Ada"}, open_store=lambda: store)
    assert name == typed_hash(schema, {"name": "Ada"})
    for text, type_hash in ((None, None), ("Text", TEXT), (schema.lower(), schema)):
        name = hash_payload(text, "x", open_store=raising(AssertionError()))
        assert name == typed_hash(type_hash, "x")


THREAD = "refs/threads/01J00000000000000000000001"


def keep(store: Store, node: Node) -> None:
    keep_node(store, new_caller(), NodeLookup(store), node)


def test_closure_that_only_a_thread_kept_is_kept_by_hand_too(store: Store) -> None:
    note = add_unchecked(store, TEXT, "hello")
    ada = put_person(store, name="Ada", note={"$ref": note})
    bob = put_person(store, name="Bob", friend=ada)
    hand_over(store, THREAD)
    node = NodeLookup(store).get(bob)

    keep(store, node)

    assert {note, ada, bob, node.type, META} <= set(list_nodes(store))


def test_blob_of_the_first_one_is_kept(store: Store) -> None:
    ada = put_person(store, name="Ada")
    first = NodeLookup(store).get(ada)
    hand_over(store, THREAD)

    keep(store, build_node(META, {"title": "Other"}, timestamp=5))
    keep(store, build_node(first.type, {"name": "Bob", "friend": ada}, timestamp=6))

    by_hand = open_root(store, NODES_REF)
    assert by_hand is not None
    assert by_hand.find(ada) == first


def test_closure_that_is_not_whole_is_refused_and_nothing_is_kept(store: Store) -> None:
    schema = put_schema(store, new_caller(), PERSON).hash
    ada = add_unchecked(store, schema, {"name": "Ada", "friend": NOWHERE})
    hand_over(store, THREAD)
    bob = build_node(schema, {"name": "Bob", "friend": ada}, timestamp=0)

    with refuses("dangling-references") as caught:
        keep(store, bob)

    assert caught.value.message == (
        f"node {bob.hash} refers to a node that is not in this store: {NOWHERE} (from {ada})"
    )
    assert caught.value.facts == {"node": bob.hash, "missing": [NOWHERE]}
    assert store.refs.find(NODES_REF) is None


def get(store: Store, name: NodeHash) -> Node:
    return NodeLookup(store).get(name)


def test_node_that_a_thread_keeps_is_not_new_but_is_kept_from_now_on(store: Store) -> None:
    name = put_payload(store, new_caller(), "Text", "hello").hash
    hand_over(store, THREAD)

    assert put_payload(store, new_caller(), "Text", "hello") == (name, False)
    assert name in set(list_nodes(store))


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
    type_text: str, payload: Any, error: str | type[Exception], store: Store
) -> None:
    with refuses(error):
        put_payload(store, new_caller(), type_text, payload)
    assert store.refs.find(NODES_REF) is None


def test_reference_that_only_a_schema_below_a_choice_declares_counts(store: Store) -> None:
    choice = {"oneOf": [{"type": "null"}, {"type": "string", "format": "cas_ref"}]}
    schema = put_schema(store, new_caller(), {"properties": {"friend": choice}}).hash

    with refuses("dangling-references", match=NOWHERE):
        put_payload(store, new_caller(), schema, {"friend": NOWHERE})
    assert put_payload(store, new_caller(), schema, {"friend": None}).new


def test_other_content_with_the_same_name_is_refused_and_never_an_alias(store: Store) -> None:
    name = put_payload(store, new_caller(), "Text", TWINS[0]).hash
    hand_over(store, THREAD)
    assert typed_hash(TEXT, TWINS[1]) == name

    with refuses("node-collision", match=name):
        put_payload(store, new_caller(), "Text", TWINS[1])
    assert get(store, name).payload == TWINS[0]
    assert store.refs.find(NODES_REF) is None


def test_copy_that_is_spoiled_elsewhere_does_not_keep_a_whole_one_out(store: Store) -> None:
    name = typed_hash(TEXT, "hello")
    add_misnamed(store, name, TEXT, "spoiled")
    hand_over(store, THREAD)

    assert put_payload(store, new_caller(), "Text", "hello") == (name, True)
    assert get(store, name).payload == "hello"


def test_references_of_a_node_whose_type_is_missing_are_the_type_alone(store: Store) -> None:
    name = add_unchecked(store, NOWHERE, {"$ref": TEXT})

    assert [each.target.hash for each in list_references(store, name)] == [NOWHERE]


REF = {"format": "cas_ref"}
HIDDEN = {"$ref": "r", "$defs": {"r": {"$id": "r", **REF}}}
"""A schema behind whose `$ref` no reference is found."""


def test_schema_that_hides_references_is_refused_and_so_is_its_use(store: Store) -> None:
    old = add_unchecked(store, META, HIDDEN)

    with refuses("invalid-payload", match="not a JSON Schema: 1 problem at the top: .ref 'r' in"):
        put_schema(store, new_caller(), HIDDEN)
    with refuses("invalid-payload", match=f"breaks schema {old}: .* hides references"):
        put_payload(store, new_caller(), old, NOWHERE)
    lone = add_unchecked(store, old, NOWHERE)
    assert [each.target.hash for each in list_references(store, lone)] == [old]
    assert len(validate_node(store, lone).problems) == len(verify_nodes(store, [old]).findings) == 1
    assert put_schema(store, new_caller(), {**HIDDEN, "$defs": {"r": {"$id": "r"}}}).new


def test_references_behind_a_pointer_are_found_without_a_process(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    schema = put_schema(store, new_caller(), {"$ref": "#/$defs/r", "$defs": {"r": REF}}).hash
    name = put_payload(store, new_caller(), schema, TEXT).hash
    monkeypatch.delattr("uwf_git.commands.cas.run_limited")

    assert [each.target.hash for each in list_references(store, name)] == [schema, TEXT]


def test_search_for_references_that_would_take_for_ever_is_stopped(store: Store) -> None:
    # No check evaluates a `then` without `if`.
    slow = {"then": {"patternProperties": {ENDLESS["pattern"]: {"format": "cas_ref"}}}}
    schema = put_schema(store, new_caller(), slow).hash
    payload = {"a" * 40 + "b": 1}
    began = time.process_time()

    with refuses("fence-hit", match="the search for references took too much time"):
        put_payload(store, new_caller(), schema, payload)
    lone = add_unchecked(store, schema, payload)
    first, *others = walk_nodes(store, lone)
    assert "the search for references" in (first.node.problem or "")
    assert [each.node.hash for each in others] == [schema, META]
    assert "the search for references" in verify_nodes(store, [lone]).findings[0].message
    assert time.process_time() - began < 5


@pytest.mark.parametrize("spelled", [NOWHERE.lower(), {"$ref": "8FWKR3TN5VIQA"}])
def test_reference_in_another_spelling_is_refused(spelled: Any, store: Store) -> None:
    schema = put_schema(store, new_caller(), {"items": {"format": "cas_ref"}}).hash

    with refuses("misspelled-reference", match=NOWHERE):
        put_payload(store, new_caller(), schema, [spelled])
    # The long one is a word, though one could read it as a name.
    assert put_payload(store, new_caller(), schema, ["accommodation", 5, None]).new


def test_damaged_builtin_node_stops_no_put_and_another_damage_is_told(store: Store) -> None:
    put_nodes(store, [Node(TEXT, META, {}, 0)], SIGNING)
    note = put_payload(store, new_caller(), "Bytes", "AP8=").hash
    add_misnamed(store, NOWHERE, TEXT, "wrong")

    assert list_references(store, note)[0].target.type_name == "JSON Schema"
    with refuses("damaged-node") as caught:
        put_nodes(store, [Node(NOWHERE, TEXT, "right", 0)], SIGNING)
    assert f"update-ref {NODES_REF} COMMIT" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("payload", "summary"),
    [
        ("\n# Heading\n\ntext", "Heading"),
        ("", ""),
        ({"name": "Ada", "age": 3}, "Ada"),
        ({"title": "T", "name": "N"}, "T"),
        ({"name": "N", "role": "R"}, "N"),
        ({"name": 5, "role": "R"}, "R"),
        ({"name": "", "a": 1}, '{"name": "", "a": 1}'),
        ([1, None, "é"], '[1, null, "é"]'),
        (None, "null"),
        ("x" * 100, "x" * 71 + "…"),
        (
            list(range(100_000)),
            "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, …",
        ),
    ],
)
def test_summary_is_one_short_line(payload: Any, summary: str) -> None:
    node: Node = build_node(TEXT, payload, timestamp=0)

    assert summarize(node) == summary
    assert len(summary) <= 72


BUILTIN_COUNT = len(BUILTIN_NODES)


def test_other_nodes_are_not_listed(store: Store) -> None:
    put_payload(store, new_caller(), "Text", "hello")
    add_unchecked(store, NOWHERE, {"title": "Of no type"})

    assert len(list_schemas(store)) == BUILTIN_COUNT


def test_damaged_node_is_a_row_that_says_so(store: Store) -> None:
    add_misnamed(store, NOWHERE, META, {"title": "Wrong"})
    put_schema(store, new_caller(), PERSON)

    person, damaged = list_schemas(store)[BUILTIN_COUNT:]

    assert person.title == "Person"
    assert damaged[:3] == (NOWHERE, None, False)
    assert (damaged.problem or "").startswith(f"node {NOWHERE} holds other content")


def test_value_is_not_read_without_a_schema(store: Store) -> None:
    ada = put_person(store, name="Ada")

    with refuses("not-a-schema"):
        validate_node(store, ada, lambda: pytest.fail("it was read"))


def test_node_whose_type_is_missing_cannot_be_checked(store: Store) -> None:
    name = add_unchecked(store, NOWHERE, {})

    with pytest.raises(NoSuchNode, match=NOWHERE):
        validate_node(store, name)


def test_every_builtin_schema_has_a_name_of_its_own() -> None:
    assert set(BUILTIN_TYPES.values()) == BUILTIN.keys()
    assert BUILTIN_TYPES["Text"] == TEXT


def test_walk_continues_past_missing_and_damaged_nodes(store: Store) -> None:
    schema = put_schema(store, new_caller(), PERSON).hash
    spoiled = put_person(store, name="Eve", note={"$ref": TEXT})
    gone = NodeHash("9" + NOWHERE[1:])
    add_misnamed(store, NOWHERE, TEXT, "wrong")
    middle = add_unchecked(store, schema, {"friend": gone, "note": {"$ref": spoiled}})
    first = add_unchecked(store, schema, {"friend": NOWHERE, "note": {"$ref": middle}})

    walked = {each.node.hash: each.node.problem for each in walk_nodes(store, first)}

    assert walked[spoiled] is None
    assert "holds other content" in (walked[NOWHERE] or "")
    assert walked[gone] == f"there is no node {gone} in this store"
    assert TEXT in walked


def test_node_whose_type_is_damaged_is_walked_to_its_type(store: Store) -> None:
    add_misnamed(store, NOWHERE, META, {"title": "Wrong"})
    first = add_unchecked(store, NOWHERE, {"a": 1})

    assert [(each.node.hash, each.node.problem is None) for each in walk_nodes(store, first)] == [
        (first, True),
        (NOWHERE, False),
    ]
