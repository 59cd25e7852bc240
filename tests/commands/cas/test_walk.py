from cas_nodes import NOWHERE, PERSON, add_misnamed, add_unchecked, new_caller, put_person
from fresh_store import fresh_store

from uwf_git.commands.cas.put import put_payload
from uwf_git.commands.cas.read import walk_nodes
from uwf_git.commands.cas.schema import put_schema
from uwf_git.model.builtin import META, TEXT
from uwf_git.model.names import NodeHash
from uwf_git.model.references import walk_closure
from uwf_git.store.lookup.lookup import NodeLookup
from uwf_git.store.store import Store


def chain(store: Store, length: int) -> list[NodeHash]:
    """Put persons, each a friend of the previous one, and all with one note."""
    note = put_payload(store, new_caller(), "Text", "hello").hash
    people: list[NodeHash] = []
    for number in range(length):
        friend = {"friend": people[-1]} if people else {}
        people.append(put_person(store, name=f"p{number}", note={"$ref": note}, **friend))
    return people


def test_walk_lists_the_closure() -> None:
    store = fresh_store()
    people = chain(store, 12)
    lookup = NodeLookup(store)

    walked = walk_nodes(store, people[-1])

    closure = walk_closure([walked[0].node.hash], lookup.get)
    assert [each.node.hash for each in walked] == [node.hash for node in closure]
    assert max(each.depth for each in walked) == 11


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
