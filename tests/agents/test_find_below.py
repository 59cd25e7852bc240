import os
from pathlib import Path

import pytest

from uwf_git.agents.files import BadFileBelow, LeftFile, find_below, open_left_file, read_left_file


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in (
        "docs/plans/000-a.md",
        "docs/plans/001-实现.md",
        "docs/plans/010-c.txt",
        "docs/plans/.hidden.md",
        "docs/plans/.env",
        "docs/more/deep/x.md",
        ".git/config",
        "odd[1].md",
        "top.md",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def test_pattern_names_files_in_order(root: Path) -> None:
    for pattern, found in [
        ("top.md", ["top.md"]),
        ("./docs/more/deep/x.md", ["./docs/more/deep/x.md"]),
        ("docs/plans/*.md", ["docs/plans/000-a.md", "docs/plans/001-实现.md"]),
        ("docs/plans/0?0-*", ["docs/plans/000-a.md", "docs/plans/010-c.txt"]),
        ("docs/plans/00[1-9]*", ["docs/plans/001-实现.md"]),
        ("docs/plans/.*", ["docs/plans/.hidden.md"]),
        ("docs/*/*/x.md", ["docs/more/deep/x.md"]),
        ("**/x.md", ["docs/more/deep/x.md"]),
        ("docs/**/0*.txt", ["docs/plans/010-c.txt"]),
        (
            "**",
            [
                "docs/more/deep/x.md",
                "docs/plans/000-a.md",
                "docs/plans/001-实现.md",
                "docs/plans/010-c.txt",
                "odd[1].md",
                "top.md",
            ],
        ),
        ("odd[1].md", ["odd[1].md"]),
        ("docs", []),
        ("docs/*", []),
        ("no/*.md", []),
        ("*/config", []),
    ]:
        assert find_below(str(root), pattern) == found


def test_links_to_folders_are_followed_but_not_by_any_depth(root: Path) -> None:
    (root / "way").symlink_to("docs/more")
    (root / "loop").symlink_to(".")
    assert find_below(str(root), "way/*/x.md") == ["way/deep/x.md"]
    assert find_below(str(root), "**/x.md") == ["docs/more/deep/x.md"]
    (root / "self").symlink_to("self")
    (root / "odd").symlink_to("top.md/x")
    assert find_below(str(root), "t*.md") == ["top.md"]


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", ".git/*", "", "docs/"])
def test_pattern_that_leads_out_is_refused(root: Path, pattern: str) -> None:
    with pytest.raises(BadFileBelow):
        find_below(str(root), pattern)


def test_search_through_a_whole_disk_ends(tmp_path: Path) -> None:
    for number in range(4):
        os.mkdir(tmp_path / str(number))
    with pytest.raises(BadFileBelow, match="looks at more than 3 names"):
        find_below(str(tmp_path), "**/x", most_names=3)


ENDLESS = 15 * 2**40


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "left"


def test_file_without_an_end_is_read_up_to_the_limit(path: Path) -> None:
    path.write_bytes(b"begun")
    os.truncate(path, ENDLESS)

    assert read_left_file(str(path), most_bytes=7) == LeftFile(b"begun\0\0", ENDLESS)


@pytest.mark.parametrize("follows_links", [True, False])
def test_pipe_and_folder_are_no_files(path: Path, *, follows_links: bool) -> None:
    os.mkfifo(path)
    for each in (path, path.parent):
        with pytest.raises(OSError, match="not a regular file"):
            open_left_file(str(each), follows_links=follows_links)
