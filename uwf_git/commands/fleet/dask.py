"""Dask.distributed as an executor; the one module that imports it. Source: distributed.dask.org.

A task goes where its thread ran last, since that machine has its clone warm, and not to a worker
that fell silent with it: Dask takes a frozen one for idle.
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
    """Connect to the scheduler at *address*; certificates are those of Dask's configuration.

    Raises:
        Refused: the extra is not installed, or the scheduler does not answer.
    """
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
    except (OSError, ValueError) as error:
        raise Refused(
            f"the scheduler {address} does not answer: {error}",
            code="no-scheduler",
            hint="start one: `dask scheduler`; then `dask worker` on each machine",
            address=address,
        ) from error
    with client:
        yield DaskExecutor(client)


class DaskExecutor:
    """Submits jobs to a scheduler."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._sent: dict[Future[Done], tuple[str, Any]] = {}
        self._last: dict[str, str] = {}
        self._silent: dict[str, str] = {}

    def submit(self, function: Callable[[Job], Done], job: Job, /) -> "Future[Done]":
        """Run ``function(job)`` on a worker."""
        told: Future[Done] = Future()
        known = set(self._client.scheduler_info(n_workers=-1)["workers"])
        silent, last = self._silent.pop(job.thread, ""), self._last.get(job.thread, "")
        where: dict[str, Any] = {}
        if silent in known:
            where = {"workers": sorted(known - {silent})}
        elif last in known:
            where = {"workers": [last], "allow_other_workers": True}
        sent = self._client.submit(_run_there, function, job, pure=False, **where)
        self._sent[told] = (job.thread, sent)

        def tell(ended: Any) -> None:
            if not told.set_running_or_notify_cancel():
                return
            if ended.status == "finished":
                done, self._last[job.thread] = ended.result()
                told.set_result(done)
            else:
                told.set_exception(ended.exception() if ended.status == "error" else _LOST)

        sent.add_done_callback(tell)
        return told

    def abandon(self, told: "Future[Done]") -> None:
        """Send the thread of a task whose worker is silent to others."""
        thread, sent = self._sent.pop(told)
        at_work = self._client.processing().items()
        self._silent[thread] = next((each for each, keys in at_work if sent.key in keys), "")
        sent.release()


def _run_there(function: Callable[[Job], Done], job: Job) -> tuple[Done, str]:
    from distributed import get_worker  # noqa: PLC0415 (an extra)

    return function(job), get_worker().address


_LOST = CancelledError("the scheduler lost the task")
