from collections.abc import Callable
from pathlib import Path

from cas_nodes import new_caller
from fresh_store import fresh_store

from uwf_git.commands.cas.put import bootstrap_store
from uwf_git.commands.cas.read import BUILTIN_TYPES
from uwf_git.model.builtin import BUILTIN, META
from uwf_git.store.lookup.cas_nodes import NODES_REF, list_nodes
from uwf_git.store.store import create_store


def test_builtin_schemas_are_kept_and_named() -> None:
    store = fresh_store()

    made = bootstrap_store(store, new_caller())

    assert made == (META, BUILTIN_TYPES)
    assert set(list_nodes(store)) == set(BUILTIN)


def test_doing_it_again_changes_nothing() -> None:
    store = fresh_store()
    bootstrap_store(store, new_caller())
    before = store.refs.find(NODES_REF)

    bootstrap_store(store, new_caller())

    assert store.refs.find(NODES_REF) == before


def test_git_alone_can_read_them(tmp_path: Path, git: Callable[..., str]) -> None:
    path = tmp_path / "s.git"
    made = bootstrap_store(create_store(str(path)), new_caller())

    name = made.schemas["Text"]
    place = f"{NODES_REF}:nodes/{name[0]}/{name[1]}/{name[2:]}.json"
    assert '"title": "Text"' in git("show", place, cwd=path)
