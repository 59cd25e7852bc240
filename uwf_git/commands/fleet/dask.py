"""Dask.distributed as an executor; the one module that imports it. Source: distributed.dask.org.

A task goes where its thread ran last, since that machine has a warm clone, and not to a worker that
fell silent with it: Dask takes a frozen worker for idle.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from typing import Any

from uwf_git.commands.fleet.work import Done, Job
from uwf_git.errors import Refused

_CONNECT_S = 10


@contextmanager
def open_dask(address: str) -> Iterator["DaskExecutor"]:
    """Connect to the scheduler at *address*; certificates come from Dask's configuration."""
    try:
        from distributed import Client  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise Refused(
            "Dask is not installed here",
            code="extra-missing",
            hint="`pip install 'uwf[dask]'`, on every machine",
            extra="dask",
        ) from error
    try:
        connect: Any = Client
        client = connect(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, TypeError, ValueError) as error:
        # TypeError: Dask's configuration names no certificates.
        raise Refused(
            f"the scheduler {address} does not answer: {error}",
            code="no-scheduler",
            hint="start one: `dask scheduler`, and `dask worker` on each machine; for tls:// name "
            "certificates in Dask's configuration",
            address=address,
        ) from error
    with client:
        yield DaskExecutor(client)


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
            if ended.status == "finished":
                done, self._last[job.thread] = ended.result()
                told.set_result(done)
            else:
                told.set_exception(ended.exception() if ended.status == "error" else _LOST)

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
    from distributed import get_worker  # noqa: PLC0415 (an extra)

    return function(job), get_worker().address


_LOST = CancelledError("the scheduler lost the task")
