from cas_nodes import new_caller
from fresh_store import fresh_store

from uwf_git.commands.cas.put import bootstrap_store
from uwf_git.store.lookup.cas_nodes import NODES_REF


def test_doing_it_again_changes_nothing() -> None:
    store = fresh_store()
    bootstrap_store(store, new_caller())
    before = store.refs.find(NODES_REF)

    bootstrap_store(store, new_caller())

    assert store.refs.find(NODES_REF) == before
