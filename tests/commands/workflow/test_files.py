import os
from pathlib import Path

import pytest

from uwf_git.commands.workflow.find import includes_beside, read_below
from uwf_git.model.yaml.include import MAX_FILE_BYTES, CannotInclude


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


def test_files_are_read_byte_for_byte(folder: Path) -> None:
    assert read_below(str(folder), "a.md") == b"a\r\n\xff"
    assert read_below(str(folder), "inner/b.md") == b"b"


@pytest.mark.parametrize("target", ["../secret", "/etc/passwd", "inner/../../secret"])
def test_link_that_leads_out_is_refused(target: str, folder: Path) -> None:
    (folder / "link.md").symlink_to(target)

    assert refused(folder, "link.md") == f"it is a link that leads out of {folder}"


def test_folder_that_is_a_link_out_is_refused(folder: Path) -> None:
    (folder / "up").symlink_to("..")

    assert "leads out" in refused(folder, "up/secret")


def test_link_that_stays_below_is_followed(folder: Path) -> None:
    (folder / "link.md").symlink_to("inner/b.md")
    (folder / "there").symlink_to("inner")

    assert read_below(str(folder), "link.md") == b"b"
    assert read_below(str(folder), "there/b.md") == b"b"


def test_folder_may_be_reached_by_a_link_itself(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").symlink_to(folder)

    assert read_below(str(tmp_path / "other"), "inner/b.md") == b"b"


def test_pipe_does_not_block(folder: Path) -> None:
    os.mkfifo(folder / "pipe")

    assert refused(folder, "pipe") == "it is not a plain file"
    assert refused(folder, "inner") in {"it is not a plain file", "Is a directory"}


@pytest.mark.parametrize("path", ["gone.md", "gone/a.md", "a.md/b", "a\0b", "x" * 300])
def test_missing_file_is_refused(path: str, folder: Path) -> None:
    assert refused(folder, path)


def test_links_in_a_circle_are_refused(folder: Path) -> None:
    (folder / "one").symlink_to("two")
    (folder / "two").symlink_to("one")

    assert refused(folder, "one")


def test_large_file_is_read_only_up_to_the_limit(folder: Path) -> None:
    (folder / "large").write_bytes(b"x" * (3 * MAX_FILE_BYTES))

    assert len(read_below(str(folder), "large")) == MAX_FILE_BYTES + 1


def test_workflow_file_includes_files_beside_it(folder: Path) -> None:
    includes = includes_beside(str(folder / "demo.yaml"))

    assert includes.name == "demo.yaml"
    assert includes.read("inner/b.md") == b"b"


def test_standard_input_lies_nowhere() -> None:
    with pytest.raises(CannotInclude, match="standard input has no folder"):
        includes_beside(None).read("a.md")
