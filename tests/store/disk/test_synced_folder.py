import os
from pathlib import Path
from unittest import mock

import pytest

from uwf_git.store.disk.durable import sync_folder


def test_every_file_and_folder_is_forced_before_the_folder_above(tmp_path: Path) -> None:
    top = tmp_path / "top"
    (top / "deep" / "deeper").mkdir(parents=True)
    (top / "file").touch()
    (top / "deep" / "deeper" / "file").touch()
    forced: list[str] = []
    seen = mock.patch.object(
        os, "fsync", side_effect=lambda fd: forced.append(os.readlink(f"/proc/self/fd/{fd}"))
    )
    with seen:
        sync_folder(str(top))
    assert [path.removeprefix(str(tmp_path)) for path in forced] == [
        "/top/deep/deeper/file",
        "/top/deep/deeper",
        "/top/deep",
        "/top/file",
        "/top",
        "",
    ]


def test_missing_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sync_folder(str(tmp_path / "a" / "b"))
