import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from agents.conftest import Lives, WaitFor

from uwf_git.agents.nested import Orphans

pytestmark = [
    pytest.mark.usefixtures("tidy"),
    pytest.mark.skipif(sys.platform != "linux", reason="nobody else hands orphans over"),
]


@pytest.fixture
def orphans() -> Iterator[Orphans]:
    with closing(Orphans()) as ours:
        yield ours


def leave_behind(script: str) -> None:
    """Start a shell in a session of its own whose parent ends at once."""
    command = ["/bin/sh", "-c", 'setsid /bin/sh -c "$0" &', script]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


# A shell may lose a signal that reaches it before it waits; who blocks the signal loses none.
OBEDIENT = """
import os, pathlib, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
place = pathlib.Path(sys.argv[1])
(place / "pid").write_text(str(os.getpid()))
signal.sigwait([signal.SIGTERM])
(place / "bye").write_text("bye")
"""


def test_orphan_is_asked_to_end(
    orphans: Orphans, tmp_path: Path, wait_for: WaitFor, lives: Lives
) -> None:
    leave_behind(f"exec {shlex.join([sys.executable, '-c', OBEDIENT, str(tmp_path)])}")
    pid = int(wait_for(tmp_path / "pid"))

    orphans.end(grace_s=10)

    assert (tmp_path / "bye").exists()
    assert not lives(pid)


def test_orphan_that_does_not_obey_is_killed_with_its_children(
    orphans: Orphans, tmp_path: Path, wait_for: WaitFor, lives: Lives
) -> None:
    leave_behind(f"trap '' TERM; sleep 60 & echo $$ $! >{tmp_path}/pids; wait")
    pids = [int(pid) for pid in wait_for(tmp_path / "pids").split()]
    started = time.monotonic()

    orphans.end(grace_s=0.1)

    assert time.monotonic() - started < 30
    assert [pid for pid in pids if lives(pid)] == []


def test_children_of_our_own_are_left_alone() -> None:
    with subprocess.Popen(["sleep", "60"]) as before, closing(Orphans()) as orphans:
        with subprocess.Popen(["sleep", "60"]) as since:
            orphans.keep(since.pid)

            orphans.end(grace_s=0)

            assert (before.poll(), since.poll()) == (None, None)
            since.kill()
        before.kill()
