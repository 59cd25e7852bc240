import json
from collections.abc import Callable
from pathlib import Path

from cli.ran import Ran

from uwf_git.model.builtin import TEXT
from uwf_git.store.lookup.lookup import list_nodes
from uwf_git.store.store import open_store

Cas = Callable[..., Ran]


def test_store_is_made_and_then_opened(cas: Cas, tmp_path: Path) -> None:
    path = str(tmp_path / "new.git")

    assert json.loads(cas("init", path, repo=None).out) == {"repo": path, "created": True}
    assert json.loads(cas("init", path, repo=None).out) == {"repo": path, "created": False}
    assert TEXT in set(list_nodes(open_store(path)))


def test_store_that_repo_names_is_used_without_a_path(cas: Cas, tmp_path: Path) -> None:
    path = str(tmp_path / "named.git")

    assert cas("init", "--format", "text", repo=path).out == f"repo: {path}\ncreated: yes\n"
