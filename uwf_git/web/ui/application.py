"""The routes as an ASGI application: the one module that knows starlette."""

import asyncio
import json
import logging
import os
import re
import secrets
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as Path
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from uwf_git.commands.caller import Caller
from uwf_git.commands.inspect.list import order_statuses
from uwf_git.commands.inspect.overview import SHOWN, Overview, Wanted
from uwf_git.commands.inspect.story import make_mask, mask_json
from uwf_git.commands.mcp.workflows import ChatPlace, build_workflow_server
from uwf_git.errors import BadUsage, Refused
from uwf_git.library.players import StepMemory
from uwf_git.library.values import KeptStore, Place
from uwf_git.model.names import ThreadId
from uwf_git.store.store import Store, open_store
from uwf_git.store.threads.naming import resolve_thread
from uwf_git.web.ui import answers, controls
from uwf_git.web.ui.site import (
    Changes,
    LiveLogs,
    Site,
    Stories,
    Workers,
    draw_thread,
    view_entry,
    view_prompt,
    view_question,
    view_thread,
)

# The table of what the server answers: the one list that the application and its tests read.

Answer = dict[str, Any] | answers.Created | answers.Picture
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")


class Route(NamedTuple):
    method: str
    path: str
    """With the names of its parts in braces."""

    answer: Callable[[Site, answers.Asked], Answer]
    query: Sequence[str] = ()


def view_about(site: Site, _asked: answers.Asked) -> dict[str, Any]:
    return {
        "version": version("uwf"),
        "store": site.place.path,
        "directory": site.place.cwd,
        "at": site.read_at(),
    }


def list_threads(site: Site, asked: answers.Asked) -> dict[str, Any]:
    """List the threads in groups, at most 100 at a time."""
    query, at = asked.query, site.read_at()
    show = query.get("show", "active")
    if show not in SHOWN:
        raise answers.bad_body("show", f"one of {', '.join(SHOWN)} is needed")
    status = query.get("status") or None
    if status not in {None, *order_statuses()}:
        raise answers.bad_body("status", f"one of {', '.join(order_statuses())} is needed")
    within, cost = _take_number(query, "within"), _take_number(query, "cost")
    wanted = Wanted(
        show,
        query.get("workflow") or None,
        query.get("search", ""),
        status=status,
        since_ms=None if within is None else int(site.place.now_ms() - within),
        least_cost=cost,
        after=query.get("after") or None,
    )
    return {**site.overview.read(site.open(), wanted), "at": at}


def _take_number(query: Mapping[str, str], name: str) -> float | None:
    text = query.get(name)
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise answers.bad_body(name, "a number is needed")
    return float(text)


def read_log(site: Site, asked: answers.Asked) -> dict[str, Any]:
    after = int(_take_number(asked.query, "after") or 0)
    return site.logs.read(resolve_thread(site.open(), asked.params["thread"]), after)


FILTERS = ("show", "workflow", "search", "status", "within", "cost", "after")
"""Names in the query of the list: `within` so many milliseconds it changed, `cost` at least."""

_THREAD = "/api/threads/{thread}"

ROUTES: Sequence[Route] = (
    Route("GET", "/api/about", view_about),
    Route("GET", "/api/threads", list_threads, FILTERS),
    Route("GET", _THREAD, view_thread),
    Route("GET", f"{_THREAD}/entries/{{commit}}", view_entry),
    Route("GET", f"{_THREAD}/picture", draw_thread, ("whole",)),
    Route("GET", f"{_THREAD}/prompt", view_prompt),
    Route("GET", f"{_THREAD}/log", read_log, ("after",)),
    Route("GET", f"{_THREAD}/question", view_question),
    Route("POST", f"{_THREAD}/question", controls.check_answer),
    *(
        Route("POST", f"{_THREAD}/{verb}", controls.control_thread(verb))
        for verb in controls.CONTROLS
    ),
    Route("POST", "/api/threads", controls.start_new),
    Route("GET", "/api/workflows", controls.list_registered),
    Route("GET", "/api/workflows/{name}", controls.view_workflow),
    Route("GET", "/api/workflows/{name}/picture", controls.draw_workflow),
    Route("GET", "/api/agents", controls.list_agents, ("thread",)),
    Route("POST", "/api/drafts", controls.begin_draft),
    Route("GET", "/api/drafts/{thread}", controls.view_draft),
    Route("GET", "/api/drafts/{thread}/picture", controls.draw_draft),
    Route("POST", "/api/drafts/{thread}/put", controls.put_draft),
)

STREAM = "/api/stream"
CHAT = "/mcp"


Endpoint = Callable[[Request], Awaitable[Response]]

_JSON = "application/json"
_BODY_S = 5.0
_READERS, _WRITERS = 4, 16


class BodyRefused(Exception):
    def __init__(self, refusal: answers.Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Application:
    def __init__(self, site: Site, changes: Changes, describe: answers.Describe) -> None:
        self._site, self._changes, self._describe = site, changes, describe
        self._readers, self._writers = Workers(_READERS), Workers(_WRITERS)
        # A chat may wait for a thread; the page must not wait for a chat.
        self._chats = Workers(_WRITERS)
        place = site.place
        self._chat_server = build_workflow_server(
            ChatPlace(place.open, place.caller, place.agent, site.new_thread_id)
        )

    def list_endpoints(self) -> dict[tuple[str, str], Endpoint]:
        """Return what answers, by method and path; every route needs the token."""
        return {
            ("GET", STREAM): self._stream,
            ("POST", CHAT): partial(self._guard, self._chat),
            **{(each.method, each.path): self._endpoint(each) for each in ROUTES},
        }

    def build(self, token: str) -> ASGIApp:
        """Return the guarded application; *token* opens what holds data."""
        routes = [
            Path(path, endpoint, methods=[method])
            for (method, path), endpoint in self.list_endpoints().items()
        ]
        assets = (*answers.OPEN_PATHS, "/modules/{name}")
        inner = Starlette(
            routes=[*routes, *(Path(path, self._asset, methods=["GET"]) for path in assets)],
            exception_handlers=dict.fromkeys((404, 405, Exception), self._tell_any),
        )
        # A path with a slash at its end is another path: no redirect to a Host that was sent.
        inner.router.redirect_slashes = False
        return _Guarded(inner, token)

    def _endpoint(self, route: Route) -> Endpoint:
        workers = self._readers if route.method == "GET" else self._writers

        async def answer(request: Request) -> Response:
            body = _parse(await _read_body(request)) if route.method == "POST" else {}
            asked = answers.Asked(request.path_params, _read_query(request, route), body)
            return await workers.run(lambda: self._answer(route, asked))

        return partial(self._guard, answer)

    async def _guard(self, answer: Endpoint, request: Request) -> Response:
        try:
            return await answer(request)
        except BodyRefused as error:
            return refuse(error.refusal)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:  # noqa: BLE001 (described below, a bug as well)
            return self._tell(error)

    def _answer(self, route: Route, asked: answers.Asked) -> Response:
        answer = route.answer(self._site, asked)
        if isinstance(answer, answers.Picture):
            return Response(answer.svg.encode(errors="replace"), media_type="image/svg+xml")
        document, status = (
            (answer.document, 201) if isinstance(answer, answers.Created) else (answer, 200)
        )
        return Response(answers.write_json(document, self._site.mask), status, media_type=_JSON)

    def _tell(self, error: Exception) -> Response:
        status, document = answers.tell_error(
            self._describe(error), self._site.mask, self._site.place.path
        )
        return Response(answers.write_json(document), status, media_type=_JSON)

    def _tell_missing(self) -> Response:
        return self._tell(Refused("there is nothing at this address", code="no-such-route"))

    async def _tell_any(self, request: Request, error: Exception) -> Response:
        match getattr(error, "status_code", None):
            case 404:
                return self._tell_missing()
            case 405:
                method = request.method[:20]
                return self._tell(
                    BadUsage(f"nothing at this address takes {method}", code="no-such-method")
                )
        return self._tell(error)

    async def _asset(self, request: Request) -> Response:
        found = answers.read_asset(request.url.path) if answers.is_asset(request.url.path) else None
        if found is None:
            return self._tell_missing()
        return Response(found[1], media_type=found[0])

    async def _chat(self, request: Request) -> Response:
        """Answer a chat program, as `uwf mcp --workflows` does."""
        body = await _read_body(request)
        status, reply = await self._chats.run(
            lambda: self._chat_server.answer_body(body, request.headers)
        )
        if reply is None:
            return Response(status_code=status)
        # Keys and values come back as they were given: nothing is spelled out.
        content = json.dumps(mask_json(reply, self._site.mask))
        return Response(content, status, media_type=_JSON)

    async def _stream(self, request: Request) -> Response:
        since = request.query_params.get("since")
        lines = (answers.write_json(line) + b"\n" async for line in self._changes.follow(since))
        return StreamingResponse(lines, media_type="application/x-ndjson")


def _read_query(request: Request, route: Route) -> dict[str, str]:
    query = dict(request.query_params.multi_items())
    for name in query.keys() - set(route.query):
        raise answers.bad_body(name, "there is no such name in the query")
    return query


async def _read_body(request: Request) -> bytes:
    """Return the body of a request; its bytes are counted while they are read."""
    content = bytearray()
    try:
        async with asyncio.timeout(_BODY_S):
            async for chunk in request.stream():
                content += chunk
                if len(content) > answers.MOST_BODY_BYTES:
                    raise BodyRefused(answers.TOO_LARGE)
    except TimeoutError:
        raise BodyRefused(
            answers.Refusal(408, "too-slow", "the body did not come in time")
        ) from None
    return bytes(content)


def _parse(content: bytes) -> dict[str, Any]:
    """Return the JSON object of a body."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise answers.bad_body("", f"it is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise answers.bad_body("", "an object is needed")
    return value


def refuse(refusal: answers.Refusal) -> Response:
    """Return the answer to a request that is refused; the connection ends, its body is not read."""
    headers = {"connection": "close"}
    return Response(write_refusal(refusal), refusal.status, headers=headers, media_type=_JSON)


def write_refusal(refusal: answers.Refusal) -> bytes:
    error = {"code": refusal.code, "message": refusal.message, "hint": refusal.hint}
    return answers.write_json({"error": error})


class _Guarded:
    """Checks each request first, and adds the headers that every answer has."""

    def __init__(self, inner: ASGIApp, token: str) -> None:
        self._inner, self._token = inner, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *answers.HEADERS]
            await send(message)

        head = answers.RequestHead(scope["method"], scope["path"], scope["headers"])
        refusal = answers.check_head(head, self._token, is_open=answers.is_asset(head.path))
        answer = self._inner if refusal is None else refuse(refusal)
        await answer(scope, receive, send_guarded)


# Run the server until it is told to end: the one module that knows uvicorn.
#
# It listens on 127.0.0.1 only. A second reader of this machine's ports gets nothing without the
# token, which is new at each start and stands in the fragment of the address: no log and no Referer
# has it.

_HOST = "127.0.0.1"
_HEAD_S = 5.0


class ServeRequest(NamedTuple):
    store: Store
    caller: Caller
    agent: str | None
    """$UWF_AGENT."""

    new_thread_id: Callable[[], ThreadId]
    describe: answers.Describe
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
    token = secrets.token_urlsafe(32)
    with _listen(request.port) as listener:
        port = listener.getsockname()[1]
        address = f"http://{_HOST}:{port}/#{token}"
        # The second: Ctrl-C before the loop has its handlers.
        with answers.hold_redirect(request.store, address) as page, suppress(KeyboardInterrupt):
            listening = Listening(address, port, page)
            asyncio.run(_run(request, token, listener, lambda: on_listening(listening)))


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((_HOST, port), backlog=256)
    except OSError as error:
        # Its own text names the address once more.
        problem = os.strerror(error.errno or 0)
        raise Refused(
            f"port {port} of {_HOST} cannot be used: {problem}",
            code="port-taken",
            hint="name another, or leave --port out: then a free one is taken",
            port=port,
        ) from error


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
        h11_max_incomplete_event_size=32 * 1024,
        timeout_graceful_shutdown=1,
    )
    server = Server(config)
    server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]  # the loop has the handlers
    loop = asyncio.get_running_loop()
    ending: list[asyncio.Task[None]] = []

    def end() -> None:
        server.should_exit = True
        ending.append(loop.create_task(changes.close()))

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # One that is ignored, as under nohup, stays ignored.
        if each != signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN:
            loop.add_signal_handler(each, end)
    # What ends it is heard from now on.
    tell()
    await server.serve(sockets=[listener])


def _build_site(request: ServeRequest) -> tuple[Site, Changes]:
    path, environ = request.store.path, request.caller.environ
    mask = make_mask(environ)
    # A log is read by several threads, which must not share the objects that one keeps.
    open_own = partial(open_store, path, environ=environ)
    logs = LiveLogs(open_own, environ)
    changes = Changes(open_own(), logs.read_on)
    now_ms, cwd = request.caller.now_ms, request.caller.cwd
    place = Place(path, cwd, environ, now_ms, request.agent, {}, KeptStore(), StepMemory())
    overview, stories = Overview(open_own(), environ), Stories(mask)
    site = Site(place, request.new_thread_id, mask, overview, stories, logs, lambda: changes.at)
    return site, changes


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
        refusal = answers.OTHER_HOST if "Host:" in str(sys.exception()) else _NO_HTTP
        body = write_refusal(refusal)
        lines = [
            b"HTTP/1.1 %d Refused" % refusal.status,
            b"content-type: application/json",
            b"content-length: %d" % len(body),
            b"connection: close",
            *(b": ".join(each) for each in answers.HEADERS),
        ]
        self.transport.write(b"\r\n".join([*lines, b"", body]))
        self.transport.close()


_NO_HTTP = answers.Refusal(400, "bad-http", "this is no valid request")
