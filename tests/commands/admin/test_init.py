import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from refusing import refuses

from uwf_git.commands.admin import Shared, init_shared, init_store
from uwf_git.store.git.hook_files import SHIMS, find_unpinned
from uwf_git.store.store import create_store, list_changed_settings, open_store, watch_config

Git = Callable[..., str]

CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"


def test_project_keeps_everything_it_has(tmp_path: Path, git: Git) -> None:
    git("init", "-q", cwd=tmp_path)
    (tmp_path / "file").write_text("x")
    git("add", "file", cwd=tmp_path)
    git("commit", "-qm", "one", cwd=tmp_path)
    before = git("rev-parse", "HEAD", cwd=tmp_path)

    made = init_store(".", str(tmp_path), os.environ)

    assert not made.created
    assert made.store.path == str(tmp_path / ".git")
    assert git("rev-parse", "HEAD", cwd=tmp_path) == before
    assert git("status", "--porcelain", cwd=tmp_path) == ""


def test_setting_of_a_store_that_an_agent_has_used_is_known(tmp_path: Path) -> None:
    environ = os.environ | {"HOME": str(tmp_path)}
    store = create_store(str(tmp_path / "store.git"), environ=environ)
    watch_config(store)

    assert init_store("store.git", str(tmp_path), environ).is_adopted
    assert list_changed_settings(open_store(store.path, environ=environ)) == []


def test_killed_init_is_completed(tmp_path: Path) -> None:
    (tmp_path / "objects" / "pack").mkdir(parents=True)
    settings = CONFIG + '[remote "a"]\n\turl = /x\n'
    (tmp_path / "config").write_text(settings)
    (tmp_path / ".tmp_0123456789abcdef").write_text("")

    assert init_store(".", str(tmp_path), os.environ).created
    assert (tmp_path / "config").read_text().startswith(settings)


def share(path: Path | None, environ: dict[str, str] | None = None) -> Shared:
    text = None if path is None else str(path)
    return init_shared(text, "/", environ or dict(os.environ), python=sys.executable)


def test_new_one_is_as_git_would_make_it_and_more(tmp_path: Path, git: Git) -> None:
    hub = tmp_path / "hub.git"

    made = share(hub)

    assert made.created
    settings = dict(
        line.split("=", 1) for line in git("config", "--local", "--list", cwd=hub).splitlines()
    )
    assert settings["core.sharedrepository"] == "group"
    assert settings["core.bare"] == "true"
    assert settings["uwf.store"] == "true"
    assert settings["core.hookspath"] == "hooks"
    assert settings["receive.fsckobjects"] == "true"
    assert settings["receive.shallowupdate"] == "false"
    assert settings["receive.denynonfastforwards"] == "true"
    hidden = git("config", "--get-all", "transfer.hideRefs", cwd=hub)
    assert hidden.split() == ["refs/uwf", "refs/replace"]
    assert sorted(os.listdir(hub / "hooks")) == sorted(SHIMS)
    assert made.hooks == [str(hub / "hooks" / name) for name in SHIMS]


def test_group_may_write_everything_that_the_owner_may(tmp_path: Path) -> None:
    share(tmp_path / "hub.git")

    for folder, _folders, files in os.walk(tmp_path / "hub.git"):
        mode = os.stat(folder).st_mode
        assert mode & stat.S_ISGID
        assert mode & stat.S_IRWXG == stat.S_IRWXG
        for name in files:
            mode = os.stat(os.path.join(folder, name)).st_mode
            assert mode >> 3 & 0o6 == mode >> 6 & 0o6, name


def test_done_again_it_changes_nothing_but_the_hooks(tmp_path: Path, git: Git) -> None:
    hub = tmp_path / "hub.git"
    share(hub)
    git("config", "receive.fsckObjects", "false", cwd=hub)
    config = (hub / "config").read_bytes()
    (hub / "hooks" / "pre-receive").write_text(SHIMS["pre-receive"] + "# older\n")

    assert not share(hub).created

    assert (hub / "config").read_bytes() == config
    assert "older" not in (hub / "hooks" / "pre-receive").read_text()


def test_repository_with_a_work_tree_is_refused(tmp_path: Path, git: Git) -> None:
    git("init", "-q", cwd=tmp_path)
    config = (tmp_path / ".git" / "config").read_bytes()

    with refuses("not-bare"):
        share(tmp_path)

    assert (tmp_path / ".git" / "config").read_bytes() == config


def test_hooks_of_others_keep_everything_as_it_is(tmp_path: Path, git: Git) -> None:
    hub = tmp_path / "hub.git"
    git("init", "-q", "--bare", hub, cwd=tmp_path)
    (hub / "hooks" / "pre-receive").write_text("#!/bin/sh\n")
    config = (hub / "config").read_bytes()

    with refuses("foreign-hook"):
        share(hub)

    assert (hub / "config").read_bytes() == config
    assert (hub / "hooks" / "pre-receive").read_text() == "#!/bin/sh\n"
    assert not (hub / "hooks" / "post-receive").exists()


@pytest.mark.parametrize("exists", [True, False])
def test_hooks_path_of_the_user_does_not_count(*, exists: bool, tmp_path: Path, git: Git) -> None:
    hub = tmp_path / "hub.git"
    git("config", "--global", "core.hooksPath", "/etc/hooks", cwd=tmp_path)
    if exists:
        git("init", "-q", "--bare", hub, cwd=tmp_path)

    share(hub)

    assert git("config", "core.hooksPath", cwd=hub) == "hooks\n"


def test_hooks_path_of_the_repository_is_refused_before_any_change(
    tmp_path: Path, git: Git
) -> None:
    hub = tmp_path / "hub.git"
    git("init", "-q", "--bare", hub, cwd=tmp_path)
    git("config", "core.hooksPath", "/etc/hooks", cwd=hub)
    config = (hub / "config").read_bytes()

    with refuses("hooks-elsewhere"):
        share(hub)

    assert (hub / "config").read_bytes() == config


def test_older_one_gets_what_it_lacks(tmp_path: Path, git: Git) -> None:
    hub = tmp_path / "hub.git"
    share(hub)
    assert find_unpinned(str(hub)) is None
    git("config", "--unset", "core.hooksPath", cwd=hub)
    assert find_unpinned(str(hub)) == (
        "it does not set core.hooksPath, so the git settings of whoever pushes count"
    )

    assert not share(hub).created

    assert find_unpinned(str(hub)) is None


@pytest.mark.parametrize("name", ["notes.txt", "config"])
def test_folder_of_other_files_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()

    with refuses("not-empty"):
        share(tmp_path)
    assert os.listdir(tmp_path) == [name]
