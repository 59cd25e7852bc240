import os
from pathlib import Path

from git_settings import remove_config

from uwf_git.commands.admin.init import init_shared
from uwf_git.commands.verify.history import find_hub_gap
from uwf_git.store.store import create_store


def test_store_without_our_hooks_has_no_rules_to_escape(tmp_path: Path) -> None:
    assert find_hub_gap(create_store(str(tmp_path / "store.git")).path) is None


def test_older_shared_store_is_told_with_what_mends_it(tmp_path: Path) -> None:
    path = init_shared("a hub.git", str(tmp_path), os.environ, python="").store.path
    assert find_hub_gap(path) is None
    remove_config(f"{path}/config", "receive.shallowUpdate", ["false"])

    found = find_hub_gap(path)

    assert found is not None
    assert "it does not set receive.shallowUpdate" in found.message
    assert found.hint == f"its owner mends it: `uwf init --shared '{path}'`"
