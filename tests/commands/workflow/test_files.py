import os
from pathlib import Path

import pytest

from uwf_git.commands.workflow.find import read_below
from uwf_git.model.yaml_include import MAX_FILE_BYTES, CannotInclude


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder, beside a file that must not be read."""
    (tmp_path / "secret").write_text("secret")
    made = tmp_path / "made"
    (made / "inner").mkdir(parents=True)
    (made / "a.md").write_bytes(b"a\r\n\xff")
    (made / "inner" / "b.md").write_text("b")
    return made


def refused(folder: Path, path: str) -> str:
    with pytest.raises(CannotInclude) as caught:
        read_below(str(folder), path)
    return caught.value.problem


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "inner/../../secret"])
def test_link_that_leads_out_is_refused(target: str, folder: Path) -> None:
    (folder / "link.md").symlink_to(target)

    assert refused(folder, "link.md") == f"it is a link that leads out of {folder}"


def test_pipe_does_not_block(folder: Path) -> None:
    os.mkfifo(folder / "pipe")

    assert refused(folder, "pipe") == "it is not a plain file"
    assert refused(folder, "inner") in {"it is not a plain file", "Is a directory"}


@pytest.mark.parametrize("path", ["gone.md", "gone/a.md", "a.md/b", "a\0b", "x" * 300])
def test_missing_file_is_refused(path: str, folder: Path) -> None:
    assert refused(folder, path)


def test_large_file_is_read_only_up_to_the_limit(folder: Path) -> None:
    (folder / "large").write_bytes(b"x" * (3 * MAX_FILE_BYTES))

    assert len(read_below(str(folder), "large")) == MAX_FILE_BYTES + 1


def test_folder_that_is_a_link_out_is_refused(folder: Path) -> None:
    (folder / "up").symlink_to("..")

    assert "leads out" in refused(folder, "up/secret")


def test_links_in_a_circle_are_refused(folder: Path) -> None:
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("one")

    assert refused(folder, "one")
