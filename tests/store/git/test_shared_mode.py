import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from uwf_git.store.git.config import GitConfig
from uwf_git.store.git.scopes import is_shared, share_folder, shared_umask

Git = Callable[..., str]


def config(value: str | None) -> GitConfig:
    return GitConfig({} if value is None else {"core.sharedrepository": [value]})


def test_setting_is_read_as_git_reads_it() -> None:
    for value, shared in [
        (None, False),
        *((word, False) for word in ("umask", "false", "0", "", "0600", "0644", "nonsense", "09")),
        *((word, True) for word in ("group", "Group", "true", "1", "all", "world", "0660", "0664")),
    ]:
        assert is_shared(config(value)) is shared


def test_folder_becomes_what_git_makes(tmp_path: Path, git: Git) -> None:
    git("init", "-q", "--bare", "--shared", "git.git", cwd=tmp_path)
    git("init", "-q", "--bare", "ours.git", cwd=tmp_path)

    share_folder(str(tmp_path / "ours.git"))

    for path in ("", "objects", "refs/heads", "HEAD", "config", "hooks"):
        theirs = (tmp_path / "git.git" / path).stat().st_mode
        assert (tmp_path / "ours.git" / path).stat().st_mode == theirs, path


def test_group_gets_what_the_owner_has_and_others_nothing(tmp_path: Path) -> None:
    modes = {"object": 0o400, "private": 0o600, "program": 0o700}
    for name, mode in modes.items():
        (tmp_path / name).touch()
        (tmp_path / name).chmod(mode)
    (tmp_path / "link").symlink_to("/")

    share_folder(str(tmp_path))

    seen = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in modes}
    assert seen == {"object": 0o440, "private": 0o660, "program": 0o770}
    assert tmp_path.stat().st_mode & stat.S_ISGID


@pytest.mark.parametrize(("value", "mode"), [("group", 0o660), (None, 0o600)])
def test_umask_leaves_the_group_its_rights_for_a_while(
    value: str | None, mode: int, tmp_path: Path
) -> None:
    before = os.umask(0o077)
    try:
        with shared_umask(config(value)):
            (tmp_path / "in").touch()
        (tmp_path / "after").touch()
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "in").stat().st_mode) == mode
    assert stat.S_IMODE((tmp_path / "after").stat().st_mode) == 0o600
