"""Run the server until it is told to end: the one module that knows uvicorn.

It listens on 127.0.0.1 only. A second reader of this machine's ports gets nothing without the
token, which is new at each start and stands in the fragment of the address: no log and no Referer
has it.
"""

import asyncio
import logging
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, NamedTuple

from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from uwf_git.commands.caller import Caller
from uwf_git.commands.inspect.overview import Overview
from uwf_git.commands.inspect.story import make_mask
from uwf_git.errors import Refused
from uwf_git.library.players import StepMemory
from uwf_git.library.values import KeptStore, Place
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store, open_store
from uwf_git.web.ui.answers import Describe, hold_redirect
from uwf_git.web.ui.application import Application, write_refusal
from uwf_git.web.ui.guard import HEADERS, OTHER_HOST, Refusal
from uwf_git.web.ui.site import Changes, LiveLogs, Site, Stories

_HOST = "127.0.0.1"
_TOKEN_BYTES = 32
_MOST_HEAD_BYTES = 32 * 1024
_HEAD_S = 5.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ServeRequest(NamedTuple):
    store: Store
    caller: Caller
    agent: str | None
    """$UWF_AGENT."""

    new_thread_id: Callable[[], ThreadId]
    describe: Describe
    port: int = 0
    """0: a free one."""


class Listening(NamedTuple):
    address: str
    """With the token in its fragment."""

    port: int
    page: str
    """A file of the user's own that leads to the address."""


def serve(request: ServeRequest, on_listening: Callable[[Listening], None]) -> None:
    """Serve until SIGINT, SIGTERM or SIGHUP; *on_listening* is called when it listens."""
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    with _listen(request.port) as listener:
        port = listener.getsockname()[1]
        address = f"http://{_HOST}:{port}/#{token}"
        # The second: Ctrl-C before the loop has its handlers.
        with hold_redirect(request.store, address) as page, suppress(KeyboardInterrupt):
            listening = Listening(address, port, page)
            asyncio.run(_run(request, token, listener, lambda: on_listening(listening)))


@contextmanager
def _listen(port: int) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((_HOST, port))
        except (OSError, OverflowError) as error:
            problem = getattr(error, "strerror", None) or str(error)
            raise Refused(
                f"port {port} of {_HOST} cannot be used: {problem}",
                code="port-taken",
                hint="name another, or leave --port out: then a free one is taken",
                port=port,
            ) from error
        listener.listen(256)
        yield listener


async def _run(
    request: ServeRequest, token: str, listener: socket.socket, tell: Callable[[], None]
) -> None:
    site, changes = _build_site(request)
    application = Application(site, changes, request.describe)
    log = logging.getLogger("uvicorn")
    log.addHandler(logging.NullHandler())
    log.propagate = False
    config = Config(
        application.build(token),
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=_MOST_HEAD_BYTES,
        timeout_graceful_shutdown=1,
    )
    server = _Server(config)
    loop = asyncio.get_running_loop()
    ending: list[asyncio.Task[None]] = []

    def end() -> None:
        server.should_exit = True
        ending.append(loop.create_task(changes.close()))

    for each in _SIGNALS:
        # One that is ignored, as under nohup, stays ignored.
        if each != signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN:
            loop.add_signal_handler(each, end)
    # What ends it is heard from now on.
    tell()
    await server.serve(sockets=[listener])


def _build_site(request: ServeRequest) -> tuple[Site, Changes]:
    path, environ = request.store.path, request.caller.environ
    mask = make_mask(environ)

    def open_own() -> Store:
        # A log is read by several threads, which must not share the objects that one keeps.
        return open_store(path, environ=environ)

    logs = LiveLogs(open_own, environ)
    changes = Changes(open_own(), logs.read_on)
    now_ms, cwd = request.caller.now_ms, request.caller.cwd
    place = Place(path, cwd, environ, now_ms, request.agent, {}, KeptStore(), StepMemory())
    overview, stories = Overview(open_own(), environ), Stories(mask)
    site = Site(place, request.new_thread_id, mask, overview, stories, logs, lambda: changes.at)
    return site, changes


class _Server(Server):
    def capture_signals(self) -> AbstractContextManager[None]:  # type: ignore[override]  # the loop has the handlers
        return nullcontext()


class _Protocol(H11Protocol):
    """HTTP that lets a client have some seconds for the head of a request."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def _watch_head(self) -> None:
        if self._is_asked():
            self._stop_watching()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(_HEAD_S, self._give_up)

    def _stop_watching(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _is_asked(self) -> bool:
        # uvicorn has no cycle before the first request.
        cycle: Any = self.cycle
        return cycle is not None and not cycle.response_complete

    def _give_up(self) -> None:
        if not self._is_asked():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 (uvicorn's own is of its kind)
        """Refuse what is no HTTP, as everything else is refused; two Hosts are of this kind."""
        if self._is_asked():
            self.transport.close()
            return
        # h11 looks for one Host first; what it found stands in the error that is being handled.
        refusal = OTHER_HOST if "Host:" in str(sys.exception()) else _NO_HTTP
        body = write_refusal(refusal)
        lines = [
            b"HTTP/1.1 %d Refused" % refusal.status,
            b"content-type: application/json",
            b"content-length: %d" % len(body),
            b"connection: close",
            *(b": ".join(each) for each in HEADERS),
        ]
        self.transport.write(b"\r\n".join([*lines, b"", body]))
        self.transport.close()


_NO_HTTP = Refusal(400, "bad-http", "this is no valid request")
