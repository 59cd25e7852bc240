import os
import subprocess
from pathlib import Path

import pytest
from agents.conftest import Lives, Program, WaitFor

from uwf_git.agents.nested import watched_by_descriptor, watched_by_stdin

pytestmark = pytest.mark.usefixtures("tidy")

TELLS = "echo $$ >told; echo out; echo err >&2; kill -s TERM $$"
STAYS = "echo $$ >told; exec sleep 60"


def start_by_number(script: str, place: Path) -> tuple["subprocess.Popen[bytes]", int]:
    read_end, write_end = os.pipe()
    child = subprocess.Popen(
        watched_by_descriptor(read_end, (script,)),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(read_end,),
        cwd=place,
        start_new_session=True,
    )
    os.close(read_end)
    return child, write_end


def start_by_stdin(script: str, place: Path) -> "subprocess.Popen[bytes]":
    (place / "stdin").write_bytes(b"given")
    return subprocess.Popen(
        watched_by_stdin(str(place), (script,)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place,
        start_new_session=True,
    )


def test_program_has_the_shells_streams_to_itself(program: Program, tmp_path: Path) -> None:
    child, tether = start_by_number(program(TELLS), tmp_path)
    os.write(tether, b"\n")
    out, err = child.communicate(timeout=10)
    os.close(tether)

    assert (out, err, child.returncode) == (b"out\n", b"err\n", 143)


def test_program_ends_when_the_tether_breaks(
    program: Program, tmp_path: Path, lives: Lives, wait_for: WaitFor
) -> None:
    by_number, tether = start_by_number(program(STAYS), tmp_path)
    first = int(wait_for(tmp_path / "told"))
    os.close(tether)
    by_number.communicate(timeout=10)
    (tmp_path / "told").unlink()
    by_stdin = start_by_stdin(program(STAYS), tmp_path)
    second = int(wait_for(tmp_path / "told"))
    by_stdin.communicate(timeout=10)

    assert not lives(first)
    assert not lives(second)
