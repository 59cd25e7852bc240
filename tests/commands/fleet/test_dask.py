"""A Dask scheduler with two workers, each with its own home: kills and frozen machines."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from commands.at_work import wait_until
from commands.fleet.machines import PLAIN, SPLIT, SPLIT_STEPS, Field, Machine, ended, finished


class Cluster:
    """A scheduler on loopback and its workers."""

    def __init__(self, place: Path, stack: ExitStack) -> None:
        self._place, self._stack = place, stack
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        where = ("--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
        self.scheduler = self._start("head", "scheduler", *where)
        self.workers = [self.work(name) for name in ("m1", "m2")]

    def work(self, name: str) -> "subprocess.Popen[str]":
        """Start a worker on a machine of its own."""
        slots = ("--nworkers", "1", "--nthreads", "1", "--no-dashboard")
        return self._start(name, "worker", self.address, *slots, "--host", "127.0.0.1")

    def _start(self, name: str, what: str, *words: str) -> "subprocess.Popen[str]":
        home = self._place / name
        home.mkdir()
        # The program beside this Python; each has a session, and so a group, of its own.
        argv = [sys.executable, "-m", "distributed.cli.dask_" + what, *words]
        environ = {**os.environ, "HOME": str(home), "DASK_TEMPORARY_DIRECTORY": str(home)}
        environ.pop("XDG_STATE_HOME", None)
        process = subprocess.Popen(
            argv,
            cwd=home,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self._stack.enter_context(ended(process))
        return process

    def drive(self, machine: Machine, *words: str) -> "subprocess.Popen[str]":
        """Start a driver."""
        on = ("--on", self.address, "--ttl", "4", "--poll", "0.3")
        return machine.start("drive", *on, *words)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        yield Cluster(tmp_path, stack)


def end_of(process: "subprocess.Popen[str]") -> dict[str, object]:
    out, err = process.communicate()
    assert process.returncode == 0, err
    found: dict[str, object] = json.loads(out)
    return found


def test_threads_and_branches_run_on_both_machines(
    field: Field, a: Machine, cluster: Cluster, tmp_path: Path
) -> None:
    for _ in range(2):
        a.begin(SPLIT)
    field.let("sleep 0.5")
    end = end_of(cluster.drive(a))
    assert end["threads"] == {"completed": 12}
    assert end["steps"] == field.paid() == 2 * SPLIT_STEPS
    assert all(list((tmp_path / each / ".uwf/hubs").iterdir()) for each in ("m1", "m2"))
    assert not a.json("verify")["problems"]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_the_thread_of_a_lost_machine_goes_on_on_the_other(
    field: Field, a: Machine, cluster: Cluster, tmp_path: Path, how: signal.Signals
) -> None:
    threads = [a.begin(PLAIN) for _ in range(2)]
    field.let_wait()
    driver = cluster.drive(a)
    with ended(driver):
        field.wait_paid(2)
        # The nanny, the worker, and the agent: they are in the sessions that the nanny began.
        stop_below(cluster.workers[0].pid, how)
        field.go.touch()
        end = end_of(driver)
    assert end["threads"] == {"completed": 2}
    # The cut one is paid twice, and no other.
    assert field.paid() == 2 * 3 + 1
    if how == signal.SIGSTOP:
        stop_below(cluster.workers[0].pid, signal.SIGCONT)
        # A fork that the hub has not: a thread that is active in a clone.
        clones = tmp_path / "m1/.uwf/hubs"
        wait_until(lambda: any(clones.glob("*/refs/threads/*")), "the late step is not kept")
    for thread in threads:
        assert field.log(thread)[-1].startswith("end: completed after 3 steps")
    assert not field.refs("refs/claims")
    assert not a.json("verify")["problems"]


def test_a_limit_of_steps_holds_where_each_machine_has_a_clone(
    field: Field, a: Machine, cluster: Cluster
) -> None:
    a.begin(SPLIT, "--max-steps", "3")
    field.let("sleep 0.2")
    end_of(cluster.drive(a))
    assert field.paid() == 3


def stop_below(pid: int, how: signal.Signals) -> None:
    """Send *how* to a process and all below it, the outermost first: nobody restarts another."""
    below: list[str] = []
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        # A thread of it may have ended meanwhile.
        with suppress(OSError):
            below += children.read_text().split()
    os.kill(pid, how)
    for each in map(int, below):
        stop_below(each, how)


@pytest.mark.parametrize("kind", ["tcp", "tls"])
def test_a_scheduler_that_is_not_there_is_told(field: Field, kind: str) -> None:
    err = finished(field.machine("a").start("drive", "--on", f"{kind}://127.0.0.1:1"), 1)
    assert f"{kind}://127.0.0.1:1 does not answer" in err
