"""Benchmark of `uwf ui`: its memory, the list of many threads, how soon a commit is seen, the end.

The requests go to a process of its own, as a browser's do. What a browser does with the answers is
measured by `paint`.
"""

import http.client
import json
import os
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from bench.deep import Bench
from bench.report import Limit, Row, Table
from bench.world import Thread, World, begin_endless, begin_thread, find_program, make_store

_MS = 1000
_ROUNDS = 10
_STREAMS = 8
_STILL_S = 1.5
_STILL_LOOKS = 12
_PATIENCE_S = 30.0

_LIMITS = {
    "list, first": (Limit("ms", 1_000),),
    "list, again": (Limit("ms", 100),),
    "a commit is seen": (Limit("ms", 250),),
    "end, with streams open": (Limit("ms", 3_000),),
    "read in a second while idle": (Limit("bytes", 4_096),),
}


def measure_page(bench: Bench) -> list[Table]:
    """Measure a server over a store with many threads."""
    size = bench.scale.page
    title = f"the page of a store with {size} threads"
    store = make_store(bench.world, "page", fsync=False)
    first = begin_endless(bench.world, store)
    workflow = first.snapshot().record.workflow
    for _ in range(size - 1):
        begin_thread(bench.world, store, workflow).unite()
    bench.tell(f"the page over {size} threads")
    with serve(bench.world, store.path) as server:
        if server is None:
            return [Table(title, [Row("uwf ui", {}, failure="uwf[ui] is not installed")])]
        return [Table(title, [*_measure(server, first)])]


class Server(NamedTuple):
    """A running `uwf ui`."""

    process: "subprocess.Popen[bytes]"
    port: int
    token: str

    @property
    def address(self) -> str:
        """What a person opens."""
        return f"http://127.0.0.1:{self.port}/#{self.token}"

    def ask(self, path: str) -> bytes:
        """Return the answer of a route."""
        with self.open(path) as response:
            content: bytes = response.read()
        return content

    @contextmanager
    def open(self, path: str) -> Iterator[Any]:
        """Yield the response of a route, before it is read."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_S)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        try:
            yield connection.getresponse()
        finally:
            connection.close()


@contextmanager
def serve(world: World, store: str) -> Iterator[Server | None]:
    """Run the server of a store; yield None if it cannot start."""
    words = [find_program("uwf"), "--repo", store, "ui", "--no-open", "--format", "json"]
    process = subprocess.Popen(
        words, env=dict(world.environ), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with process:
        assert process.stdout is not None
        told = process.stdout.readline()
        if not told:
            yield None
            return
        document = json.loads(told)
        try:
            yield Server(process, document["port"], document["address"].partition("#")[2])
        finally:
            process.send_signal(signal.SIGINT)


def _measure(server: Server, thread: Thread) -> Iterator[Row]:
    # Its listener is open before its first import is done.
    server.ask("/api/about")
    yield _row("memory, begun", mib=_resident_mib(server))
    yield _row("list, first", ms=_time(lambda: server.ask("/api/threads")))
    again = [_time(lambda: server.ask("/api/threads")) for _ in range(_ROUNDS)]
    yield _row("list, again", ms=statistics.median(again))
    yield _row("memory, after lists", mib=_resident_mib(server))
    with server.open("/api/stream") as stream:
        stream.readline()
        yield _row("a commit is seen", ms=_time_commits(stream, thread))
        _wait_until_still(server)
        before = _count_read(server)
        stream.fp.raw._sock.settimeout(_STILL_S)  # noqa: SLF001 (http.client has no other way)
        _expect_silence(stream)
        read = (_count_read(server) - before) / _STILL_S
        yield _row("read in a second while idle", bytes=read)
    yield _row("end, with streams open", ms=_time_end(server))


def _row(name: str, **figures: float | None) -> Row:
    return Row(name, figures, _LIMITS.get(name, ()))


def _time(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * _MS


def _time_commits(stream: Any, thread: Thread) -> float:
    """Return how long after a commit its line comes, in the median."""
    took: list[float] = []
    for _ in range(_ROUNDS):
        arrived: list[float] = []

        def wait(arrived: list[float] = arrived) -> None:
            stream.readline()
            arrived.append(time.perf_counter())

        waiting = threading.Thread(target=wait)
        waiting.start()
        with thread.kept_in_place():
            thread.step()
            recorded = time.perf_counter()
            waiting.join(_PATIENCE_S)
        # Putting it back is a change as well.
        stream.readline()
        took.append(max(0.0, arrived[0] - recorded) * _MS)
    return statistics.median(took)


def _wait_until_still(server: Server) -> None:
    """Wait until the server reads no more refs: it looks on for the tick of a coarse clock."""
    still, before = 0, -1
    for _ in range(200):
        read = _count_read(server)
        still, before = (still + 1 if read == before else 0), read
        if still == _STILL_LOOKS:
            return
        time.sleep(0.05)


def _expect_silence(stream: Any) -> None:
    try:
        stream.readline()
    except TimeoutError:
        return


def _time_end(server: Server) -> float:
    opened = [server.open("/api/stream") for _ in range(_STREAMS)]
    for each in opened:
        each.__enter__().readline()
    began = time.perf_counter()
    server.process.send_signal(signal.SIGINT)
    server.process.wait(_PATIENCE_S)
    return (time.perf_counter() - began) * _MS


def _resident_mib(server: Server) -> float | None:
    """Return the resident memory; None where there is no /proc."""
    try:
        with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return None


def _count_read(server: Server) -> int:
    """Return how many bytes the process has read; 0 where there is no /proc."""
    try:
        with open(f"/proc/{server.process.pid}/io", encoding="ascii") as file:
            return int(file.readline().split()[1])
    except OSError:
        return 0
