from cas_nodes import NOWHERE, PERSON, add_misnamed, add_unchecked, new_caller, put_person
from commands.forging import forge, holds, tip_of
from fresh_store import fresh_store

from uwf_git.commands.cas import put_schema
from uwf_git.commands.verify.puts import check_puts
from uwf_git.model.builtin import TEXT
from uwf_git.model.names import Oid
from uwf_git.store.lookup import NODES_REF
from uwf_git.store.store import Store


def told(store: Store, *, known: Oid | None = None) -> list[str]:
    found = check_puts(store, [(NODES_REF, tip_of(store, NODES_REF), known)])
    return [each.message for each in found]


def test_nodes_that_no_put_would_take_are_reported() -> None:
    store = fresh_store()
    schema = put_schema(store, new_caller(), PERSON).hash
    before = tip_of(store, NODES_REF)
    wrong = add_unchecked(store, schema, {"name": 5})
    lone = add_unchecked(store, schema, {"name": "Ada", "friend": NOWHERE})
    add_misnamed(store, NOWHERE, TEXT, "wrong")

    messages = told(store)
    assert told(store, known=before) == messages
    assert f"node {lone} refers to {NOWHERE}, which is not in the same commit" in messages
    assert f"node {wrong} breaks its schema at name: 5 is not of type 'string'" in messages
    assert any(each.startswith(f"node {NOWHERE} holds other content") for each in messages)


def test_anything_but_nodes_is_reported() -> None:
    store = fresh_store()
    put_person(store, name="Ada")
    forge(store, NODES_REF, {-1: holds(store, "head.json", b"{}")})

    assert told(store) == ["the commit has head.json, which does not belong there"]
