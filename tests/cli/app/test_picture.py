"""Where a picture goes: a file is written whole or not at all."""

import os
import stat

import pytest
from cli.program import Uwf

from uwf_git.cli.output import paging

OUTLINE = """\
demo
Write until somebody is content.

start
│
writer  Writes.
│
checker  Checks.
├─ 1. meta.ok = false ↺ writer
├─ 2. otherwise ↓ end
│
end
"""


def test_output_goes_to_a_file(uwf: Uwf) -> None:
    path = uwf.file()
    printed = uwf("workflow", "graph", path, "--as", "svg").out

    ran = uwf("workflow", "graph", path, "--as", "svg", "-o", "demo.svg")

    assert (ran.status, ran.out) == (0, "")
    assert (uwf.place / "demo.svg").read_text() == printed
    assert uwf("workflow", "graph", path, "--as", "svg", "-o", "-").out == printed


def test_signs_are_ascii_where_nothing_else_is_written(
    uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "stdout_is_utf8", lambda: False)

    assert uwf("workflow", "graph", uwf.file()).out == (
        OUTLINE.replace("│", "|").replace("├─", "+-").replace("↺", "^").replace("↓", "v")
    )


def test_a_link_stays_and_its_file_is_replaced(uwf: Uwf) -> None:
    (uwf.place / "old.txt").write_text("old")
    (uwf.place / "link.txt").symlink_to("old.txt")
    assert uwf("workflow", "graph", uwf.file(), "-o", "link.txt").status == 0
    assert (uwf.place / "link.txt").is_symlink()
    assert (uwf.place / "old.txt").read_text() == OUTLINE


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o4755])
def test_a_file_keeps_its_mode(uwf: Uwf, mode: int) -> None:
    path = uwf.place / "old.txt"
    path.touch()
    path.chmod(mode)
    assert uwf("workflow", "graph", uwf.file(), "-o", "old.txt").status == 0
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == (OUTLINE, mode & 0o777)


def test_a_pipe_is_written_to(uwf: Uwf) -> None:
    path = str(uwf.place / "pipe")
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert uwf("workflow", "graph", uwf.file(), "-o", "pipe").status == 0
        assert os.read(reader, 10_000).decode() == OUTLINE
    finally:
        os.close(reader)
