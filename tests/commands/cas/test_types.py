import pytest
from cas_nodes import NOWHERE, add_notes, add_unchecked, new_caller
from fresh_store import fresh_store

from uwf_git.commands.cas import (
    BUILTIN_TYPES,
    find_plain_type,
    is_schema,
    put_payload,
    resolve_type,
)
from uwf_git.errors import Refused
from uwf_git.model.builtin import BUILTIN, META, TEXT
from uwf_git.model.names import NotANodeHash
from uwf_git.store.lookup.lookup import NodeLookup, NoSuchNode


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
