"""Executors by their address: processes of this machine, a Dask scheduler, the user's own."""

import importlib
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor as FutureExecutor
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from urllib.parse import urlsplit

from uwf_git.commands.fleet.drive import Executor
from uwf_git.errors import BadUsage, Refused

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


@contextmanager
def open_executor(address: str, *, insecure: bool) -> Iterator[Executor]:
    """Open the executor at *address*: ``local:N``, ``tls://…``, ``tcp://…`` or ``MODULE:FUNCTION``.

    *insecure* allows a connection without TLS to another machine.

    Raises:
        BadUsage, Refused: there is none, or its package is missing.
    """
    kind, _colon, rest = address.partition(":")
    if kind == "local" and rest.isdecimal() and int(rest):
        # Not forked: this process has threads and connections.
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(int(rest), mp_context=context)
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)
    elif kind in {"tcp", "tls"}:
        if kind == "tcp" and urlsplit(address).hostname not in _LOOPBACK and not insecure:
            raise Refused(
                f"{address} is not encrypted, and whoever reaches a scheduler runs anything on its "
                "workers",
                code="insecure-scheduler",
                hint="start it with TLS and name tls://…; in a network of your own: --insecure",
                address=address,
            )
        from uwf_git.commands.fleet.dask import open_dask  # noqa: PLC0415 (an extra, and slow)

        with open_dask(address) as executor:
            yield executor
    else:
        yield _call(address, kind, rest)


def _call(address: str, module: str, function: str) -> Executor:
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
