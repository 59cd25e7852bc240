from cas_nodes import NOWHERE, PERSON, add_unchecked, hand_over, new_caller, put_person
from fresh_store import fresh_store
from refusing import refuses

from uwf_git.commands.cas import keep_node, put_schema
from uwf_git.model.builtin import META, TEXT
from uwf_git.model.node import Node, build_node
from uwf_git.store.lookup.lookup import NODES_REF, NodeLookup, list_nodes, open_root
from uwf_git.store.store import Store

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
