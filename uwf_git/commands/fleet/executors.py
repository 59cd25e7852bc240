"""Executors by their address: processes of this machine, a Dask scheduler, the user's own."""

import errno
import importlib
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures import Executor as FutureExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from urllib.parse import urlsplit

from uwf_git.commands.fleet.drive import Executor
from uwf_git.commands.fleet.shared_drive import Done, Job
from uwf_git.errors import BadUsage, Refused


def open_executor(address: str, *, insecure: bool) -> AbstractContextManager[Executor]:
    """Return the executor at *address*; *insecure* allows another machine without TLS.

    ``local:N``, ``tls://…``, ``tcp://…``, ``MODULE:FUNCTION``.
    """
    kind, _colon, rest = address.partition(":")
    if kind == "local" and rest.isdecimal() and int(rest):
        return _open_local(int(rest))
    is_dask = kind in {"tcp", "tls"}
    try:
        host = urlsplit(address).hostname
        if not is_dask:
            made = getattr(importlib.import_module(kind), rest)()
            made.submit  # noqa: B018 (whatever has none is no executor)
    except Exception as error:  # whatever the user's function does
        raise BadUsage(
            f"{address!r} names no executor: {error}",
            code="no-such-executor",
            hint="local:4 (1 or more), tls://HOST:8786, or MODULE:FUNCTION that returns one",
            address=address,
        ) from error
    if not is_dask:
        return _close(made) if hasattr(made, "get_executor") else _shut_down(made)
    if kind == "tcp" and host not in {"localhost", "127.0.0.1", "::1"} and not insecure:
        raise Refused(
            f"{address} is not encrypted, and whoever reaches a scheduler runs anything on its "
            "workers",
            code="insecure-scheduler",
            hint="start it with TLS and name tls://…; in a network of your own: --insecure",
            address=address,
        )
    return open_dask(address)


_AT_WORK = threading.Lock()
"""A worker process holds it while a run is at work."""


class _LocalExecutor(FutureExecutor):
    """Processes of this machine: when one was killed, new ones take the place of all."""

    def __init__(self, count: int, safe_path: str | None) -> None:
        self._count, self.most, self._safe_path = count, 2 * count, safe_path
        self._pool = self._open()

    def submit(self, function: Callable[..., Any], /, *args: Any, **_named: Any) -> "Future[Any]":
        try:
            return self._pool.submit(_run_here, function, *args)
        except BrokenProcessPool:
            self._pool = self._open()
            return self._pool.submit(_run_here, function, *args)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 (as concurrent.futures has it)
        self._pool.shutdown(wait, cancel_futures=cancel_futures)

    def _open(self) -> ProcessPoolExecutor:
        # Not forked: this process has threads and connections.
        context = multiprocessing.get_context("spawn")
        try:
            return ProcessPoolExecutor(
                self._count, context, initializer=_begin_worker, initargs=(self._safe_path,)
            )
        except OSError as error:
            if error.errno not in {errno.EROFS, errno.EACCES, errno.ENOENT, errno.ENOSPC}:
                raise
            raise Refused(
                f"local:{self._count} cannot be started: {error.strerror}",
                code="no-processes",
                hint="it needs semaphores in /dev/shm, so mount that, and let your user write "
                "there; `uwf thread run` drives a thread without them",
            ) from error


@contextmanager
def _open_local(count: int) -> Iterator[Executor]:
    # A worker, and the tracker of semaphores, begin as `python -c`: what they import first would be
    # taken from the current directory. Agents have the user's own value.
    before = _swap_safe_path("1")
    try:
        with _shut_down(_LocalExecutor(count, before)) as executor:
            yield executor
    finally:
        _swap_safe_path(before)


_SAFE_PATH = "PYTHONSAFEPATH"


def _swap_safe_path(value: str | None) -> str | None:
    """Change the variable that keeps the current directory out of Python's imports; None: unset."""
    before = os.environ.pop(_SAFE_PATH, None)
    if value is not None:
        os.environ[_SAFE_PATH] = value
    return before


def _run_here(function: Callable[..., Any], *args: Any) -> Any:
    with _AT_WORK:
        return function(*args)


def _begin_worker(safe_path: str | None) -> None:
    """Give agents the user's own value; end once the driver is gone and no run is at work."""
    _swap_safe_path(safe_path)

    def wait() -> None:
        driver = multiprocessing.parent_process()
        if driver is not None:
            driver.join()
            with _AT_WORK:
                os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


@contextmanager
def _shut_down(executor: FutureExecutor) -> Iterator[Executor]:
    """Yield *executor*, and shut it down if it can be."""
    try:
        yield executor
    finally:
        if hasattr(executor, "shutdown"):
            try:
                executor.shutdown(cancel_futures=True)
            except TypeError:  # the executor of a Dask client
                executor.shutdown(wait=False)


# Dask.distributed as an executor; no other module imports Dask. Source: distributed.dask.org.
#
# A task goes where its thread ran last, since that machine has a warm clone, and not to a worker
# that fell silent with the clone: Dask takes a frozen worker for idle.

_CONNECT_S = 10


def open_dask(address: str) -> AbstractContextManager["DaskExecutor"]:
    """Connect to the scheduler at *address*; certificates come from Dask's configuration."""
    distributed = _load_dask()
    try:
        client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, TypeError, ValueError) as error:
        # TypeError: Dask's configuration names no certificates.
        raise Refused(
            f"the scheduler {address} does not answer: {error}",
            code="no-scheduler",
            hint="start one: `dask scheduler`, and `dask worker` on each machine; for tls:// name "
            "certificates in Dask's configuration",
            address=address,
        ) from error
    return _close(client)


@contextmanager
def _close(client: Any) -> Iterator["DaskExecutor"]:
    """Yield the executor of a Dask client, and close the client with the cluster that it began."""
    try:
        with client:
            yield DaskExecutor(client)
    finally:
        if client.cluster is not None:
            client.cluster.close()


class DaskExecutor:
    def __init__(self, client: Any) -> None:
        self._client = client
        self._sent: dict[Future[Done], Any] = {}
        self._last: dict[str, str] = {}

    def submit(self, function: Callable[[Job], Done], job: Job, /) -> "Future[Done]":
        """Run ``function(job)`` on a worker."""
        told: Future[Done] = Future()
        known, silent = self._list_workers(job.ttl_s)
        last, where = self._last.get(job.thread, ""), {}
        if last in known - silent:
            where = {"workers": [last], "allow_other_workers": True}
        if silent and known - silent:
            where = {"workers": sorted(known - silent), "allow_other_workers": False}
        sent = self._client.submit(_run_there, function, job, pure=False, **where)
        self._sent[told] = sent

        def tell(ended: Any) -> None:
            self._sent.pop(told, None)
            if not told.set_running_or_notify_cancel():
                return
            if ended.status not in {"finished", "error"}:
                told.set_exception(CancelledError("the scheduler lost the task"))
                return
            try:
                done, self._last[job.thread] = ended.result()
            except Exception as error:  # noqa: BLE001 (the driver asks what became of the task)
                told.set_exception(error)
            else:
                told.set_result(done)

        sent.add_done_callback(tell)
        return told

    def list_silent(self, ttl_s: float) -> list["Future[Done]"]:
        """List the tasks that wait at, or run on, workers of which nothing was heard so long."""
        silent = self._list_workers(ttl_s)[1]
        if not silent:
            return []
        at_work = self._client.processing()
        keys = {key for each in silent for key in at_work.get(each, ())}
        return [told for told, sent in list(self._sent.items()) if sent.key in keys]

    def _list_workers(self, ttl_s: float) -> tuple[set[str], set[str]]:
        found = self._client.scheduler_info(n_workers=-1)["workers"]
        seen = {each: told["last_seen"] for each, told in found.items()}
        newest = max(seen.values(), default=0)
        return set(seen), {each for each, last in seen.items() if newest - last > ttl_s}


def _run_there(function: Callable[[Job], Done], job: Job) -> tuple[Done, str]:
    return function(job), _load_dask().get_worker().address


def _load_dask() -> Any:
    try:
        import distributed  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise Refused(
            "Dask is not installed here",
            code="extra-missing",
            hint="`pip install 'uwf[dask]'`, on every machine",
            extra="dask",
        ) from error
    return distributed
