import os
from pathlib import Path

import pytest

from uwf_git.agents.terminal import choose_pager, run_pager


@pytest.mark.parametrize(
    ("environ", "setting", "chosen"),
    [
        ({"GIT_PAGER": "a -x", "PAGER": "c"}, "b", "a -x"),
        ({"PAGER": "c"}, "b", "b"),
        ({"PAGER": "c"}, None, "c"),
        ({"GIT_PAGER": "", "PAGER": "c"}, "b", None),
        ({"PAGER": " cat "}, None, None),
        ({"PAGER": "c", "TERM": "dumb"}, None, None),
        ({"PATH": "/nowhere"}, None, None),
    ],
)
def test_pager_is_the_one_of_git(
    environ: dict[str, str], setting: str | None, chosen: str | None
) -> None:
    assert choose_pager({"TERM": "xterm", **environ}, setting) == chosen


def test_less_is_used_where_it_is_installed(tmp_path: Path) -> None:
    (tmp_path / "less").write_text("#!/bin/sh\n")
    (tmp_path / "less").chmod(0o755)

    assert choose_pager({"TERM": "xterm", "PATH": str(tmp_path)}, None) == "less"


def test_pager_reads_until_the_end_of_the_block(tmp_path: Path) -> None:
    out = tmp_path / "out"

    with run_pager(f"echo $LESS > {out}; cat >> {out}", {"PATH": os.environ["PATH"]}) as into:
        os.write(into, b"text\n")

    assert out.read_text() == "FRX\ntext\n"
