"""Which threads and workflows have diverged from what a remote last had."""

import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from commands.forging import forge, run_by
from store.conftest import Git
from store.story import THREAD, Story

from uwf_git.model.names import Oid
from uwf_git.store import refs
from uwf_git.store.git.config import list_mirrors, set_config
from uwf_git.store.remotes.remotes import RemoteHeads, add_remote, repair_remote
from uwf_git.store.store import Store, create_store, open_store
from uwf_git.store.threads.heads import ACTIVE

REF = ACTIVE + THREAD


def test_only_another_history_is_divergence(store: Store, story: Story) -> None:
    first = story.head.commit
    second = story.step().commit
    (other, *_more) = forge(store, REF, {-1: run_by(b"Mallory <m@x>")})[-1:]
    for remote, seen in (("a", first), ("b", second), ("c", other), ("d", Oid("1" * 40))):
        set_config(os.path.join(store.path, "config"), f"remote.{remote}.url", "/nowhere")
        store.refs.create(f"refs/uwf/remotes/{remote}/threads/{THREAD}", seen)
    # A damaged ref counts as none.
    Path(store.path, "refs/uwf/remotes/b/archive").mkdir()
    Path(store.path, "refs/uwf/remotes/b/archive", THREAD).write_text("damaged\n")

    heads = RemoteHeads(open_store(store.path, environ=os.environ))

    assert list(heads.find_thread(THREAD, other)) == [("b", second)]
    assert list(heads.find_thread(THREAD, first)) == []
    assert list(heads.find_workflow("demo", first)) == []


def test_packed_refs_is_not_read_again_for_each_remote(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        set_config(os.path.join(store.path, "config"), f"remote.r{number}.url", "/nowhere")
    read = Mock(wraps=refs.read_packed_refs)
    monkeypatch.setattr(refs, "read_packed_refs", read)

    heads = RemoteHeads(open_store(store.path, environ=os.environ))

    assert list(heads.find_thread(THREAD, Oid("1" * 40))) == []
    read.assert_not_called()


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return Path(create_store(str(tmp_path / "hub.git")).path)


def cloned(git: Git, hub: Path) -> Store:
    git("clone", "--quiet", "--mirror", hub, hub.parent / "mirror.git", cwd=hub)
    return open_store(str(hub.parent / "mirror.git"), environ=os.environ)


def settings_of(store: Store) -> list[tuple[str, list[str]]]:
    config = open_store(store.path).config
    return sorted((name, all_) for name, all_ in config.values.items() if name[:6] == "remote")


def test_a_repaired_mirror_has_what_remote_add_writes(git: Git, hub: Path, tmp_path: Path) -> None:
    mirror, added = cloned(git, hub), create_store(str(tmp_path / "added.git"))
    assert list_mirrors(mirror.config) == ["origin"]
    for _time in range(2):
        repair_remote(mirror, "origin")
    add_remote(added, "origin", str(hub), cwd="/")
    assert settings_of(mirror) == settings_of(added)


def test_branches_and_tags_of_a_repaired_mirror_still_come(git: Git, hub: Path) -> None:
    tree = git("mktree", cwd=hub).strip()
    first = git("commit-tree", "-m", "first", tree, cwd=hub).strip()
    git("update-ref", "refs/heads/main", first, cwd=hub)
    git("tag", "v1", first, cwd=hub)
    mirror = cloned(git, hub)
    repair_remote(mirror, "origin")
    second = git("commit-tree", "-m", "second", "-p", first, tree, cwd=hub).strip()
    git("update-ref", "refs/heads/main", second, cwd=hub)
    git("tag", "v2", second, cwd=hub)
    git("fetch", "--quiet", cwd=Path(mirror.path))
    assert git("for-each-ref", cwd=Path(mirror.path)) == git("for-each-ref", cwd=hub)
