import errno
import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from model.telling import tell_cases
from refusing import raising

from uwf_git.agents.files import (
    BadFileBelow,
    LeftFile,
    OutputFile,
    create_output,
    find_below,
    is_secret_name,
    open_left_file,
    read_below,
    read_left_file,
    remove_below,
)

PATHS = Path(__file__).parent / "made_up" / "paths.json"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    root.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("not for you")
    return root


def read(root: Path, path: str, *, follows: bool = False) -> bytes | None:
    return read_below(str(root), path, most_bytes=10, follows_links=follows)


def problem(root: Path, path: str, *, follows: bool = False) -> str:
    with pytest.raises(BadFileBelow) as caught:
        read(root, path, follows=follows)
    return caught.value.problem


@pytest.mark.parametrize("follows", [False, True])
def test_what_lies_outside_is_neither_read_nor_removed(root: Path, follows: bool) -> None:  # noqa: FBT001 (the value tested)
    (root / "folder").symlink_to("../outside")
    (root / "file").symlink_to("../outside/secret")
    for path in ("folder/secret", "../outside/secret", str(root.parent / "outside" / "secret")):
        assert problem(root, path, follows=follows)
        with pytest.raises(BadFileBelow):
            remove_below(str(root), path)
    assert problem(root, "file", follows=follows) in {
        "is a link",
        "leads out of the work directory",
    }
    remove_below(str(root), "file")
    assert not (root / "file").is_symlink()
    assert (root.parent / "outside" / "secret").read_text() == "not for you"


def test_git_is_not_reached_by_a_link(root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("x")
    (root / "innocent").symlink_to(".git")
    with pytest.raises(BadFileBelow, match="git's own"):
        remove_below(str(root), "innocent/config")
    assert (root / ".git" / "config").exists()


def test_secrets_by_name_are_neither_read_nor_removed(root: Path) -> None:
    (root / "conf").mkdir()
    (root / "conf" / "id_ed25519").write_text("k")
    (root / "notes").symlink_to("conf/id_ed25519")
    assert problem(root, "conf/id_ed25519") == "is a secret by its name"
    assert problem(root, "notes", follows=True) == "is a secret by its name"
    with pytest.raises(BadFileBelow, match="secret by its name"):
        remove_below(str(root), "conf/id_ed25519")
    assert (root / "conf" / "id_ed25519").exists()


def test_other_kinds_of_files_are_refused(root: Path) -> None:
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    (root / "large").write_text("x" * 11)
    (root / "loop").symlink_to("loop")
    assert problem(root, "folder") == "is no ordinary file"
    assert problem(root, "pipe") == "is no ordinary file"
    assert problem(root, "large").startswith("is larger than")
    assert problem(root, "loop") == "is a link"
    assert "cannot be used" in problem(root, "large/inner")
    with pytest.raises(BadFileBelow, match="is a directory"):
        remove_below(str(root), "folder")


@pytest.fixture
def output(tmp_path: Path) -> Iterator[OutputFile]:
    with closing(create_output(str(tmp_path / "out"))) as made:
        yield made


def test_truncated_output_is_read_from_its_beginning(output: OutputFile, tmp_path: Path) -> None:
    os.write(output.descriptor, b"a long line")
    assert [*output.read_new()] == [b"a long line"]
    (tmp_path / "out").write_bytes(b"")
    os.write(output.descriptor, b"new")

    assert [*output.read_new()] == [b"new"]


def test_last_bytes_are_read_from_the_beginning_of_a_line(output: OutputFile) -> None:
    os.write(output.descriptor, b"one\ntwo\nthree\n")

    output.skip_to_last(8)

    assert [*output.read_new()] == [b"three\n"]


def test_older_file_is_replaced_and_not_truncated(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with path.open("rb") as old, closing(create_output(str(path))) as new:
        os.write(new.descriptor, b"new")
        assert old.read() == b"old"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can reserve room for a file")
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.usefixtures("tidy")
def test_file_for_which_there_is_no_room_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path = tmp_path / "out"
    monkeypatch.setattr(fcntl, "ioctl", refusing(number))

    with pytest.raises(OSError, match=os.strerror(number)) as told:
        create_output(str(path), reserved_bytes=1)

    assert told.value.filename == str(path)
    assert not path.exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can reserve room for a file")
def test_file_system_that_cannot_reserve_is_used_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "ioctl", refusing(errno.EOPNOTSUPP))

    with closing(create_output(str(tmp_path / "out"), reserved_bytes=1)) as output:
        assert os.write(output.descriptor, b"x") == 1


def refusing(number: int) -> Callable[..., int]:
    """Return an ioctl(2) of a system that refuses."""

    return raising(OSError(number, os.strerror(number)))


@pytest.fixture
def root_below(tmp_path: Path) -> Path:
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


def test_paths_and_patterns(root_below: Path, golden: Callable[[str, str], None]) -> None:
    answers = {
        "is_secret_name": is_secret_name,
        "find_below": lambda pattern: find_below(str(root_below), pattern),
    }
    golden("paths.txt", tell_cases(PATHS, answers))


def test_links_to_folders_are_followed_but_not_by_any_depth(root_below: Path) -> None:
    (root_below / "way").symlink_to("docs/more")
    (root_below / "loop").symlink_to(".")
    assert find_below(str(root_below), "way/*/x.md") == ["way/deep/x.md"]
    assert find_below(str(root_below), "**/x.md") == ["docs/more/deep/x.md"]
    (root_below / "self").symlink_to("self")
    (root_below / "odd").symlink_to("top.md/x")
    assert find_below(str(root_below), "t*.md") == ["top.md"]


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", ".git/*", "", "docs/"])
def test_pattern_that_leads_out_is_refused(root_below: Path, pattern: str) -> None:
    with pytest.raises(BadFileBelow):
        find_below(str(root_below), pattern)


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
