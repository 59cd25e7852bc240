import pytest
from cas_nodes import NOWHERE, add_misnamed, add_notes, put_person
from fresh_store import fresh_store
from refusing import refuses

from uwf_git.commands.cas.read import has_node
from uwf_git.errors import StoreDamaged
from uwf_git.model.builtin import META, TEXT
from uwf_git.model.names import NotANodeHash


def test_node_that_a_ref_keeps_is_there() -> None:
    store = fresh_store()
    ada = put_person(store, name="Ada")

    assert has_node(store, ada) == (ada, True)
    assert has_node(store, ada[:6].lower()) == (ada, True)
    assert has_node(store, META) == (META, True)


@pytest.mark.parametrize(
    ("text", "asked"), [(NOWHERE.lower(), NOWHERE), ("8fwk", "8FWK"), ("8FWKR3TN5VIQA", NOWHERE)]
)
def test_node_that_no_ref_keeps_is_not(text: str, asked: str) -> None:
    assert has_node(fresh_store(), text) == (asked, False)


def test_word_that_can_be_no_name_is_refused() -> None:
    with pytest.raises(NotANodeHash):
        has_node(fresh_store(), "nope!")


def test_word_that_means_several_is_refused() -> None:
    store = fresh_store()
    add_notes(store, 40)

    with refuses("ambiguous-node"):
        has_node(store, "0")


def test_node_that_is_damaged_is_neither_there_nor_not() -> None:
    store = fresh_store()
    add_misnamed(store, NOWHERE, TEXT, "wrong")

    with pytest.raises(StoreDamaged):
        has_node(store, NOWHERE)
