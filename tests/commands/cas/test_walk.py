from cas_nodes import NOWHERE, PERSON, add_misnamed, add_unchecked, new_caller, put_person
from fresh_store import fresh_store

from uwf_git.commands.cas import put_schema, walk_nodes
from uwf_git.model.builtin import META, TEXT
from uwf_git.model.names import NodeHash


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
