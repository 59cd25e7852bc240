import pytest
from cas_nodes import NOWHERE, add_notes
from fresh_store import fresh_store
from refusing import refuses

from uwf_git.commands.cas import has_node


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
