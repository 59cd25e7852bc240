"""Executors by their address: processes of this machine, a Dask scheduler, the user's own."""

import importlib
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor as FutureExecutor
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from urllib.parse import urlsplit

from uwf_git.commands.fleet.drive import Executor
from uwf_git.errors import BadUsage, Refused

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def open_executor(address: str, *, insecure: bool) -> AbstractContextManager[Executor]:
    """Return the executor at *address*; *insecure* allows another machine without TLS.

    ``local:N``, ``tls://…``, ``tcp://…``, ``MODULE:FUNCTION``.
    """
    kind, _colon, rest = address.partition(":")
    if kind == "local" and rest.isdecimal() and int(rest):
        # Not forked: this process has threads and connections.
        context = multiprocessing.get_context("spawn")
        return _shut_down(ProcessPoolExecutor(int(rest), mp_context=context))
    if kind not in {"tcp", "tls"}:
        return _shut_down(_call(address, kind, rest))
    if kind == "tcp" and urlsplit(address).hostname not in _LOOPBACK and not insecure:
        raise Refused(
            f"{address} is not encrypted, and whoever reaches a scheduler runs anything on its "
            "workers",
            code="insecure-scheduler",
            hint="start it with TLS and name tls://…; in a network of your own: --insecure",
            address=address,
        )
    from uwf_git.commands.fleet.dask import open_dask  # noqa: PLC0415 (an extra, and slow)

    return open_dask(address)


@contextmanager
def _shut_down(executor: FutureExecutor) -> Iterator[Executor]:
    """Yield *executor*, and shut it down if it can be."""
    try:
        yield executor
    finally:
        if hasattr(executor, "shutdown"):
            executor.shutdown(cancel_futures=True)


def _call(address: str, module: str, function: str) -> FutureExecutor:
    try:
        made: FutureExecutor = getattr(importlib.import_module(module), function)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise BadUsage(
            f"{address!r} names no executor: {error}",
            code="no-such-executor",
            hint="local:4, tls://HOST:8786, or MODULE:FUNCTION that returns one",
            address=address,
        ) from error
    return made
