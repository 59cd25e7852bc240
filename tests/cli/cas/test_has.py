from collections.abc import Callable

from cas_nodes import NOWHERE, add_misnamed
from cli.ran import Ran

from uwf_git.model.builtin import TEXT
from uwf_git.store.store import Store

Cas = Callable[..., Ran]


def test_text_is_a_word(cas: Cas) -> None:
    assert cas("has", TEXT, "--format", "text") == Ran(0, "yes\n", "")
    assert cas("has", NOWHERE, "--format", "text") == Ran(1, "no\n", "")


def test_damaged_node_is_neither(cas: Cas, store: Store) -> None:
    add_misnamed(store, NOWHERE, TEXT, "wrong")

    assert cas("has", NOWHERE).status == 5
