import time
from typing import Any

import pytest
from cas_nodes import (
    ENDLESS,
    NOWHERE,
    PERSON,
    TWINS,
    add_misnamed,
    add_notes,
    add_unchecked,
    hand_over,
    new_caller,
    put_person,
)
from commands.world import DEMO, World
from fresh_store import fresh_store
from refusing import refuses

from uwf_git.commands.cas import (
    BUILTIN_TYPES,
    cat_node,
    check_payload,
    find_plain_type,
    find_problems,
    find_title,
    find_type_name,
    get_node,
    has_node,
    hash_payload,
    is_schema,
    keep_node,
    list_references,
    list_schemas,
    put_payload,
    put_schema,
    resolve_type,
    summarize,
    validate_node,
    walk_nodes,
)
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.builtin import BUILTIN, BUILTIN_NODES, META, META_NODE, TEXT
from uwf_git.model.names import NodeHash, NotANodeHash
from uwf_git.model.node import (
    Node,
    NotCanonical,
    build_node,
    build_self_typed_node,
    self_typed_hash,
    typed_hash,
)
from uwf_git.model.problem import Problem
from uwf_git.store.lookup.lookup import NODES_REF, NodeLookup, NoSuchNode, list_nodes, open_root
from uwf_git.store.store import Store


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


def schema_node(schema: Any) -> Node:
    return build_node(META, schema, timestamp=0)


def test_all_problems_are_listed_with_their_places() -> None:
    problems = find_problems(schema_node(PERSON), {"name": 5, "note": 6})

    assert problems == [
        Problem("name", "5 is not of type 'string'"),
        Problem("note", "6 is not of type 'object'"),
    ]


@pytest.mark.parametrize(
    "schema",
    [{"type": "strin"}, {"$ref": "#/$defs/gone"}, {"pattern": "("}, [], "object", {"format": 1}],
)
@pytest.mark.parametrize("meta", [META_NODE, build_self_typed_node({}, timestamp=0)])
def test_payload_of_a_meta_schema_has_to_be_a_json_schema(meta: Node, schema: Any) -> None:
    with refuses("invalid-payload", match="this is not a JSON Schema: 1 problem at "):
        check_payload(meta, schema)


def test_payload_of_a_foreign_meta_schema_has_to_keep_to_it_too() -> None:
    meta = build_self_typed_node({"required": ["title"]}, timestamp=0)

    assert find_problems(meta, {"title": "A"}) == []
    assert [each.message for each in find_problems(meta, {})] == ["'title' is a required property"]


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


def test_node_is_found_by_any_unique_beginning_in_any_case() -> None:
    store = fresh_store()
    ada = put_person(store, name="Ada")

    for text in (ada, ada.lower(), ada[:5], ada[:5].lower()):
        found = get_node(store, text)
        assert (found.node.hash, found.node.payload, found.type_name) == (
            ada,
            {"name": "Ada"},
            "Person",
        )


def test_node_that_is_another_than_its_name_says_is_never_given() -> None:
    store = fresh_store()
    add_misnamed(store, NOWHERE, TEXT, "wrong")

    with pytest.raises(StoreDamaged, match="holds other content"):
        get_node(store, NOWHERE)


def test_node_of_an_old_version_of_a_workflow_is_found(world: World) -> None:
    old = world.put().workflow
    new = world.put(DEMO.replace("Writes.", "Writes well.")).workflow

    assert [get_node(world.store, name).type_name for name in (old, new)] == ["Workflow"] * 2


@pytest.mark.parametrize(
    ("text", "asked"), [(NOWHERE.lower(), NOWHERE), ("8fwk", "8FWK"), ("8FWKR3TN5VIQA", NOWHERE)]
)
def test_node_that_no_ref_keeps_is_not(text: str, asked: str) -> None:
    assert has_node(fresh_store(), text) == (asked, False)


def test_word_that_means_several_is_refused() -> None:
    store = fresh_store()
    add_notes(store, 40)

    with refuses("ambiguous-node"):
        has_node(store, "0")


def test_beginning_of_a_hash_is_looked_up_in_the_store() -> None:
    store = fresh_store()
    schema = put_schema(store, new_caller(), PERSON).hash

    name = hash_payload(schema[:5].lower(), {"name": "Ada"}, open_store=lambda: store)
    assert name == typed_hash(schema, {"name": "Ada"})


THREAD = "refs/threads/01J00000000000000000000001"


def keep(store: Store, node: Node) -> None:
    keep_node(store, new_caller(), NodeLookup(store), node)


def test_closure_that_only_a_thread_kept_is_kept_by_hand_too() -> None:
    store = fresh_store()
    note = add_unchecked(store, TEXT, "hello")
    ada = put_person(store, name="Ada", note={"$ref": note})
    bob = put_person(store, name="Bob", friend=ada)
    hand_over(store, THREAD)
    node = NodeLookup(store).get(bob)

    keep(store, node)

    assert {note, ada, bob, node.type, META} <= set(list_nodes(store))


def test_blob_of_the_first_one_is_kept() -> None:
    store = fresh_store()
    ada = put_person(store, name="Ada")
    first = NodeLookup(store).get(ada)
    hand_over(store, THREAD)

    keep(store, build_node(META, {"title": "Other"}, timestamp=5))
    bob = build_node(first.type, {"name": "Bob", "friend": ada}, timestamp=6)
    keep(store, bob)

    by_hand = open_root(store, NODES_REF)
    assert by_hand is not None
    assert by_hand.find(ada) == first


def test_closure_that_is_not_whole_is_refused_and_nothing_is_kept() -> None:
    store = fresh_store()
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


def test_many_missing_nodes_are_one_line() -> None:
    store = fresh_store()
    schema = put_schema(
        store, new_caller(), {"items": {"type": "string", "format": "cas_ref"}}
    ).hash
    names = [f"8FWKR3TN5V1{number:02}" for number in range(12)]

    with refuses("dangling-references") as caught:
        keep(store, build_node(schema, names, timestamp=0))

    told = f"12 nodes that are not in this store: {', '.join(names[:10])} and 2 more"
    assert caught.value.message.endswith(told)
    assert caught.value.facts["missing"] == names


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


def test_type_that_is_missing_or_damaged_has_no_name() -> None:
    store = fresh_store()
    lone = add_unchecked(store, NOWHERE, 1)
    lookup = NodeLookup(store)
    node = lookup.get(lone)
    assert find_type_name(lookup, node) is None

    add_misnamed(store, NOWHERE, META, {"title": "Wrong"})
    assert find_type_name(NodeLookup(store), node) is None


@pytest.mark.parametrize(
    ("payload", "title"),
    [
        ({"title": "A"}, "A"),
        ({"title": " two\nlines "}, "two lines"),
        ({"title": " "}, None),
        ({"title": 5}, None),
        ({}, None),
        (True, None),
    ],
)
def test_title_is_one_line_or_none(payload: Any, title: str | None) -> None:
    assert find_title(payload) == title


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


def test_others_follow_by_title_and_those_without_come_last() -> None:
    store = fresh_store()
    caller = new_caller()
    person = put_schema(store, caller, PERSON).hash
    unnamed = put_schema(store, caller, {"type": "null"}).hash
    animal = put_schema(store, caller, {"title": "Animal"}).hash
    meta = put_payload(store, caller, None, {"title": "Meta"}).hash

    assert [row[:2] for row in list_schemas(store)[BUILTIN_COUNT:]] == [
        (animal, "Animal"),
        (meta, "Meta"),
        (person, "Person"),
        (unnamed, None),
    ]


def test_other_nodes_are_not_listed() -> None:
    store = fresh_store()
    put_payload(store, new_caller(), "Text", "hello")
    add_unchecked(store, NOWHERE, {"title": "Of no type"})

    assert len(list_schemas(store)) == BUILTIN_COUNT


def test_damaged_node_is_a_row_that_says_so() -> None:
    store = fresh_store()
    add_misnamed(store, NOWHERE, META, {"title": "Wrong"})
    put_schema(store, new_caller(), PERSON)

    person, damaged = list_schemas(store)[BUILTIN_COUNT:]

    assert person.title == "Person"
    assert damaged[:3] == (NOWHERE, None, False)
    assert (damaged.problem or "").startswith(f"node {NOWHERE} holds other content")


@pytest.mark.parametrize("schema", [True, False, {}])
def test_smallest_schemas_are_schemas(schema: object) -> None:
    assert put_schema(fresh_store(), new_caller(), schema).new


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


def test_every_builtin_schema_but_the_meta_schema_has_a_name_of_its_own() -> None:
    assert set(BUILTIN_TYPES.values()) == BUILTIN.keys() - {META}
    assert BUILTIN_TYPES["Text"] == TEXT


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Text", TEXT),
        (TEXT, TEXT),
        (TEXT.lower(), TEXT),
        ("8FWKR3TN5VIQA", NOWHERE),
        ("text", None),
        (TEXT[:5], None),
        ("", None),
    ],
)
def test_names_and_whole_hashes_need_no_store(text: str, meant: str | None) -> None:
    assert find_plain_type(text) == meant


@pytest.mark.parametrize(
    ("text", "error"),
    [("person", NotANodeHash), ("", NotANodeHash), ("EEEE", NoSuchNode), ("0", Refused)],
)
def test_word_that_means_no_type_is_refused(text: str, error: type[Exception]) -> None:
    store = fresh_store()
    add_notes(store, 40)

    with pytest.raises(error):
        resolve_type(NodeLookup(store), text)


def test_node_is_a_schema_if_its_type_is_a_meta_schema() -> None:
    store = fresh_store()
    caller = new_caller()
    meta = put_payload(store, caller, None, {"type": "object"}).hash
    schema = put_payload(store, caller, meta, {"type": "string"}).hash
    lone = add_unchecked(store, NOWHERE, {})
    lookup = NodeLookup(store)

    judged = [is_schema(lookup, lookup.get(name)) for name in (META, TEXT, meta, schema, lone)]
    assert judged == [True, True, True, True, False]


def test_walk_continues_past_missing_and_damaged_nodes() -> None:
    store = fresh_store()
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


def test_node_whose_type_is_damaged_is_walked_to_its_type() -> None:
    store = fresh_store()
    add_misnamed(store, NOWHERE, META, {"title": "Wrong"})
    first = add_unchecked(store, NOWHERE, {"a": 1})

    walked = walk_nodes(store, first)

    assert [(each.node.hash, each.node.problem is None) for each in walked] == [
        (first, True),
        (NOWHERE, False),
    ]
