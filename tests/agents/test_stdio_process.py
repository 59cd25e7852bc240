import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agents.conftest import Lives
from refusing import raising

from uwf_git.agents.nested import StdioEnded, StdioProcess

Start = Callable[..., StdioProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a shell script as a companion."""
    started: list[StdioProcess] = []

    def run(script: str, **more: object) -> StdioProcess:
        argv = ("/bin/sh", "-c", script)
        given = (argv, dict(os.environ), str(tmp_path))
        started.append(StdioProcess(*given, **more))  # type: ignore[arg-type]  # on_stderr
        return started[-1]

    yield run
    for each in started:
        each.close()


def nothing() -> None:
    """Wait no longer than that."""


def lines(companion: StdioProcess, number: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < number:
        line = companion.receive()
        if line is not None:
            found.append(line)
    return found


def listen(companion: StdioProcess) -> None:
    """Listen for ever."""
    while True:
        companion.receive()


def test_lines_go_both_ways(start: Start) -> None:
    cat = start("cat")
    cat.send(b"one", wait=nothing)
    cat.send("zwei ü".encode(), wait=nothing)

    assert lines(cat, 2) == [b"one", "zwei ü".encode()]


def test_long_lines_go_both_ways_at_once(start: Start) -> None:
    cat = start("cat")
    cat.send(b"x" * 3_000_000, wait=nothing)

    assert lines(cat, 1) == [b"x" * 3_000_000]


def test_line_that_comes_in_many_small_pieces_is_whole(start: Start) -> None:
    program = "import os, time\nfor _ in range(1500): os.write(1, b'x'); time.sleep(0.0002)"
    companion = start(f'exec {sys.executable} -c "{program}"')

    assert lines(companion, 1) == [b"x" * 1500]


def test_line_without_an_end_is_given_at_the_end(start: Start) -> None:
    companion = start("printf 'one\\ntwo'")

    assert lines(companion, 2) == [b"one", b"two"]
    with pytest.raises(StdioEnded):
        listen(companion)


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -KILL $$", 137)])
def test_end_has_the_exit_status(script: str, code: int, start: Start) -> None:
    companion = start(script)

    with pytest.raises(StdioEnded):
        listen(companion)
    assert companion.wait(5) == code


def test_daemon_that_holds_the_output_open_is_not_waited_for(start: Start, lives: Lives) -> None:
    companion = start("sleep 75 & echo $!")
    (pid,) = map(int, lines(companion, 1))

    with pytest.raises(StdioEnded):
        listen(companion)
    companion.close()
    assert not lives(pid)


def test_stderr_is_passed_on_and_its_end_is_kept(start: Start) -> None:
    seen: list[bytes] = []
    companion = start("echo begun >&2; read -r line", on_stderr=seen.append)
    companion.close()

    assert b"".join(seen) == companion.stderr_tail == b"begun\n"


def test_program_that_does_not_read_is_not_waited_for(start: Start) -> None:
    class EnoughError(Exception):
        """Waited long enough."""

    deaf = start("exec sleep 76")
    with pytest.raises(EnoughError):
        deaf.send(b"x" * 3_000_000, wait=raising(EnoughError()))


def test_write_to_an_ended_program_is_reported(start: Start) -> None:
    gone = start("exec <&-; exit 0")
    gone.wait(5)

    with pytest.raises(StdioEnded):
        gone.send(b"x" * 3_000_000, wait=nothing)


def test_flood_without_a_line_end_is_too_much(start: Start) -> None:
    flood = start("head -c 80000000 /dev/zero; sleep 77")

    with pytest.raises(StdioEnded):
        listen(flood)
    with pytest.raises(StdioEnded) as again:
        flood.receive()
    assert again.value.is_too_long


def test_close_ends_a_stubborn_program_and_what_left_the_group(start: Start, lives: Lives) -> None:
    stubborn = start("trap '' TERM; setsid sleep 78 & echo $!; echo $$; while :; do sleep 1; done")
    pids = list(map(int, lines(stubborn, 2)))
    stubborn.close()

    assert [pid for pid in pids if lives(pid)] == []


def test_close_lets_a_program_finish_at_end_of_input(start: Start, tmp_path: Path) -> None:
    start("cat >/dev/null; echo done >finished").close()

    assert (tmp_path / "finished").read_text() == "done\n"


def test_program_dies_with_us(lives: Lives) -> None:
    program = (
        "import os, sys, time\n"
        "from uwf_git.agents.nested import *\n"
        "script = 'setsid sleep 79 & echo $!; echo $$; exec sleep 79'\n"
        "c = StdioProcess(('/bin/sh', '-c', script), dict(os.environ), '/')\n"
        "found = []\n"
        "while len(found) < 2:\n"
        "    found += [line.decode() for line in [c.receive()] if line]\n"
        "print(*found, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as us:
        assert us.stdout is not None
        pids = list(map(int, us.stdout.readline().split()))
        assert all(map(lives, pids))
        us.send_signal(signal.SIGKILL)
    until = time.monotonic() + 20
    while any(map(lives, pids)) and time.monotonic() < until:
        time.sleep(0.02)

    assert [pid for pid in pids if lives(pid)] == []
