import os
from collections.abc import Callable
from pathlib import Path

import pytest
from git_settings import remove_config

from uwf_git.store.git.config import add_config, set_config
from uwf_git.store.store import (
    Store,
    accept_config,
    create_store,
    list_changed_settings,
    own_change,
    watch_config,
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return the store of a user with a home."""
    opened = create_store(str(tmp_path / "store.git"), environ=os.environ)
    set_config(f"{opened.path}/config", "uwf.agent", "mine")
    return opened


def change(store: Store, name: str, value: str = "x") -> None:
    set_config(f"{store.path}/config", name, value)


def test_nothing_is_noticed_before_an_agent_was_started(store: Store) -> None:
    change(store, "uwf.onEvent")
    assert list_changed_settings(store) == accept_config(store) == []


@pytest.mark.parametrize(
    ("edit", "names"),
    [
        (lambda path: set_config(path, "uwf.onEvent", "evil"), ["uwf.onevent"]),
        (lambda path: set_config(path, "uwf.agent", "evil"), ["uwf.agent"]),
        (lambda path: add_config(path, "uwf.agent", "mine"), ["uwf.agent"]),
        (lambda path: remove_config(path, "uwf.agent", {"mine"}), ["uwf.agent"]),
        (lambda path: Path(path).write_text(""), ["uwf.agent"]),
        (lambda path: set_config(path, "uwf.llm.keyEnv", "HOME"), ["uwf.llm.keyenv"]),
        (lambda path: set_config(path, "gpg.ssh.program", "evil"), ["gpg.ssh.program"]),
        (lambda path: set_config(path, "remote.x.url", "/evil"), ["remote.x.url"]),
        (lambda path: set_config(path, "include.path", "evil"), ["include.path"]),
        (lambda path: set_config(path, "uwf.claude.model", "opus"), []),
        (lambda path: set_config(path, "commit.gpgSign", "true"), []),
        (lambda path: set_config(path, "branch.main.remote", "origin"), []),
        (lambda path: Path(path).write_text(f"# seen\n{Path(path).read_text()}"), []),
    ],
)
def test_what_something_else_changes_is_told_until_it_is_accepted(
    store: Store, edit: Callable[[str], None], names: list[str]
) -> None:
    watch_config(store)
    edit(f"{store.path}/config")
    watch_config(store)

    assert list_changed_settings(store) == list_changed_settings(store) == names
    assert accept_config(store) == names
    assert list_changed_settings(store) == []


def test_own_changes_are_known_and_hide_no_others(store: Store) -> None:
    watch_config(store)
    change(store, "core.hooksPath")
    with own_change(store):
        change(store, "uwf.onEvent")
        remove_config(f"{store.path}/config", "uwf.agent", {"mine"})

    assert list_changed_settings(store) == ["core.hookspath"]


def test_what_is_known_is_not_in_the_store(store: Store) -> None:
    before = sorted(Path(store.path).rglob("*"))
    watch_config(store)
    assert sorted(Path(store.path).rglob("*")) == before
    watch_config(store._replace(trust_file=None))
    change(store, "uwf.onEvent")
    assert list_changed_settings(store._replace(trust_file=None)) == []


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff"])
def test_damaged_record_is_none(store: Store, content: bytes) -> None:
    assert store.trust_file is not None
    known = Path(store.trust_file).with_name("known-config")
    known.parent.mkdir(parents=True, exist_ok=True)
    known.write_bytes(content)
    change(store, "uwf.onEvent")
    assert list_changed_settings(store) == []
