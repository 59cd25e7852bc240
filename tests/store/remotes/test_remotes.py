import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.store.git.config import add_config, set_config
from uwf_git.store.remotes.remotes import (
    add_remote,
    choose_remote,
    is_remote_name,
    list_remotes,
    remote_url,
    remove_remote_settings,
)
from uwf_git.store.store import Store, create_store, open_store

Git = Callable[..., str]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return create_store(str(tmp_path / "store.git"), environ=os.environ)


def reopened(store: Store) -> Store:
    return open_store(store.path, environ=os.environ)


def test_added_remote_is_what_git_reads(store: Store, git: Git, tmp_path: Path) -> None:
    added = add_remote(store, "origin", "hub.git", cwd=str(tmp_path))
    assert added.url == f"{tmp_path}/hub.git"
    assert list_remotes(store.config) == list_remotes(reopened(store).config) == [added]
    told = git("config", "--get-regexp", r"^remote\.", cwd=Path(store.path)).splitlines()
    tracked = "refs/uwf/remotes/origin"
    assert told == [
        f"remote.origin.url {tmp_path}/hub.git",
        *(
            f"remote.origin.fetch +refs/{kind}/*:{tracked}/{kind}/*"
            for kind in ("threads", "archive", "workflows")
        ),
        *(
            f"remote.origin.push refs/{kind}/*:refs/{kind}/*"
            for kind in ("threads", "archive", "workflows")
        ),
    ]


def test_forgotten_remote_leaves_the_rest_of_the_config(store: Store, tmp_path: Path) -> None:
    before = Path(store.path, "config").read_text()
    add_remote(store, "origin", "hub.git", cwd=str(tmp_path))
    remove_remote_settings(store, "origin")
    assert Path(store.path, "config").read_text() == before
    with refuses("no-such-remote"):
        remove_remote_settings(store, "origin")


def test_a_taken_name_is_refused(store: Store, tmp_path: Path) -> None:
    set_config(f"{store.path}/config", "remote.origin.fetch", "+refs/heads/*:refs/x/*")
    with refuses("remote-exists"):
        add_remote(store, "origin", "hub.git", cwd=str(tmp_path))


def test_nothing_is_written_for_what_leads_nowhere(store: Store) -> None:
    before = Path(store.path, "config").read_bytes()
    for name, url, error in (("a b", "x", "bad-remote-name"), ("a", "ext::x", "bad-remote-url")):
        with refuses(error):
            add_remote(store, name, url, cwd="/")
    assert Path(store.path, "config").read_bytes() == before


@given(st.text("ab./-@{~:?*[\\ lock\x00\x7f_ü", max_size=8))
def test_names_are_those_that_git_takes(name: str) -> None:
    parts = f"refs/remotes/{name}/x".split("/")
    wrong = (
        not all(parts)
        or any(part.startswith(".") or part.endswith(".lock") for part in parts)
        or ".." in name
        or "@{" in name
        or any(char in "~^:?*[\\ \x00\x7f" for char in name)
    )
    assert is_remote_name(name) == (not wrong)


def test_the_default_is_the_only_one_else_origin(store: Store, tmp_path: Path) -> None:
    with refuses("which-remote", match="no remote yet"):
        choose_remote(store.config, None)
    add_remote(store, "b", "b.git", cwd=str(tmp_path))
    assert choose_remote(store.config, None).name == "b"
    add_remote(store, "a", "a.git", cwd=str(tmp_path))
    with refuses("which-remote") as which:
        choose_remote(store.config, None)
    assert "a, b" in (which.value.hint or "")
    add_remote(store, "origin", "c.git", cwd=str(tmp_path))
    assert choose_remote(store.config, None).name == "origin"
    assert choose_remote(store.config, "a").name == "a"
    with refuses("no-such-remote", match="there is no remote c"):
        choose_remote(store.config, "c")


def test_a_project_s_own_remotes_count_only_where_no_other_was_added(
    store: Store, git: Git, tmp_path: Path
) -> None:
    git("remote", "add", "origin", "https://forge.example.com/project", cwd=Path(store.path))
    assert choose_remote(reopened(store).config, None).name == "origin"
    added = reopened(store)
    add_remote(added, "threads", "hub.git", cwd=str(tmp_path))
    assert choose_remote(added.config, None).name == "threads"
    assert choose_remote(added.config, "origin").name == "origin"
    add_remote(added, "backup", "backup.git", cwd=str(tmp_path))
    with refuses("which-remote") as which:
        choose_remote(added.config, None)
    assert which.value.facts["known"] == ["backup", "threads"]


def test_beside_a_remote_another_name_is_proposed(store: Store, git: Git, tmp_path: Path) -> None:
    git("remote", "add", "origin", "https://forge.example.com/project", cwd=Path(store.path))
    for free in ("threads", "hub", "uwf", "threads2", "threads3"):
        with refuses("remote-exists") as exists:
            add_remote(store, "origin", "hub.git", cwd=str(tmp_path))
        assert f"`uwf remote add {free} URL`" in (exists.value.hint or "")
        assert "remove" not in (exists.value.hint or "")
        add_remote(store, free, "hub.git", cwd=str(tmp_path))


def test_pushes_may_go_elsewhere_but_to_one_place(store: Store, tmp_path: Path) -> None:
    remote = add_remote(store, "origin", "https://host/x", cwd=str(tmp_path))
    config = f"{store.path}/config"
    set_config(config, "url.ssh://host/.pushInsteadOf", "https://host/")
    store = reopened(store)
    assert remote_url(store, remote).text == "https://host/x"
    assert remote_url(store, remote, for_push=True).text == "ssh://host/x"
    add_config(config, "remote.origin.pushurl", "https://host/y")
    store = reopened(store)
    remote = choose_remote(store.config, None)
    assert remote_url(store, remote, for_push=True).text == "https://host/y"
    add_config(config, "remote.origin.pushurl", "https://host/z")
    store = reopened(store)
    with refuses("several-push-urls"):
        remote_url(store, choose_remote(store.config, None), for_push=True)


def test_a_relative_path_of_git_s_begins_where_git_stands(store: Store) -> None:
    set_config(f"{store.path}/config", "remote.origin.url", "../hub.git")
    store = reopened(store)
    url = remote_url(store, choose_remote(store.config, None))
    assert url.text == os.path.join(os.path.dirname(store.path), "hub.git")
