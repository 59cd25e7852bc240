import os
from pathlib import Path

import pytest

from uwf_git.agents.files import LeftFile, open_left_file, read_left_file

ENDLESS = 15 * 2**40


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "left"


def test_small_file_is_read_whole_and_a_long_one_up_to_the_limit(path: Path) -> None:
    path.write_bytes(b"what was left")

    assert read_left_file(str(path), most_bytes=100) == LeftFile(b"what was left", 13)
    assert read_left_file(str(path), most_bytes=4) == LeftFile(b"what", 13)


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


def test_link_is_followed_only_on_request(path: Path) -> None:
    path.write_bytes(b"text")
    link = path.with_name("link")
    link.symlink_to(path)

    assert read_left_file(str(link), most_bytes=9, follows_links=True).content == b"text"
    with pytest.raises(OSError, match="levels of symbolic links"):
        read_left_file(str(link), most_bytes=9)


@pytest.mark.usefixtures("tidy")
def test_nothing_stays_open(path: Path) -> None:
    path.write_bytes(b"text")

    read_left_file(str(path), most_bytes=9)
    with pytest.raises(OSError, match="not a regular file"):
        read_left_file("/dev/zero", most_bytes=9)
