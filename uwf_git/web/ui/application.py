"""The routes as an ASGI application: the one module that knows starlette."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as Path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from uwf_git.commands.inspect.excerpt import mask_json
from uwf_git.commands.mcp.workflows import ChatPlace, build_workflow_server
from uwf_git.errors import BadUsage, Refused
from uwf_git.web.ui.answers import (
    Asked,
    Created,
    Describe,
    Picture,
    bad_body,
    tell_error,
    write_json,
)
from uwf_git.web.ui.asset_files import is_asset, read_asset
from uwf_git.web.ui.changes import Changes
from uwf_git.web.ui.guard import (
    HEADERS,
    MOST_BODY_BYTES,
    TOO_LARGE,
    Refusal,
    RequestHead,
    check_head,
)
from uwf_git.web.ui.routes import CHAT, ROUTES, STREAM, Route
from uwf_git.web.ui.site import Site
from uwf_git.web.ui.workers import Workers

Endpoint = Callable[[Request], Awaitable[Response]]

_JSON = "application/json"
_BODY_S = 5.0
_READERS, _WRITERS = 4, 16


def _no_such_route() -> Refused:
    return Refused("there is nothing at this address", code="no-such-route")


def _no_such_method(method: str) -> BadUsage:
    return BadUsage(f"nothing at this address takes {method[:20]}", code="no-such-method")


class BodyRefused(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


_TOO_SLOW = Refusal(408, "too-slow", "the body did not come in time")


class Application:
    def __init__(self, site: Site, changes: Changes, describe: Describe) -> None:
        self._site, self._changes, self._describe = site, changes, describe
        self._readers, self._writers = Workers(_READERS), Workers(_WRITERS)
        # A chat may wait for a thread; the page must not wait for a chat.
        self._chats = Workers(_WRITERS)
        place = site.place
        self._chat_server = build_workflow_server(
            ChatPlace(place.open, place.caller, place.agent, site.new_thread_id)
        )

    def list_endpoints(self) -> dict[str, dict[str, Endpoint]]:
        """Return what answers, by path and method; every route needs the token."""
        paths: dict[str, dict[str, Endpoint]] = {
            STREAM: {"GET": self._stream},
            CHAT: {"POST": self._chat},
        }
        for route in ROUTES:
            paths.setdefault(route.path, {})[route.method] = self._endpoint(route)
        return paths

    def build(self, token: str) -> ASGIApp:
        """Return the guarded application; *token* opens what holds data."""
        routes = [
            Path(path, _choose(methods), methods=list(methods))
            for path, methods in self.list_endpoints().items()
        ]
        inner = Starlette(
            routes=[*routes, Path("/{path:path}", self._asset, methods=["GET"])],
            exception_handlers={
                404: self._tell_missing, 405: self._tell_method, Exception: self._tell_bug
            },
        )  # fmt: skip
        # A path with a slash at its end is another path: no redirect to a Host that was sent.
        inner.router.redirect_slashes = False
        return _Guarded(inner, token)

    def _endpoint(self, route: Route) -> Endpoint:
        workers = self._readers if route.method == "GET" else self._writers

        async def answer(request: Request) -> Response:
            try:
                body = await _read_body(request) if route.method == "POST" else {}
                asked = Asked(request.path_params, _read_query(request, route), body)
                return await workers.run(lambda: self._answer(route, asked))
            except BodyRefused as error:
                return refuse(error.refusal)
            except ClientDisconnect:
                return Response(status_code=400)
            except Exception as error:  # noqa: BLE001 (described below, a bug as well)
                return self._tell(error)

        return answer

    def _answer(self, route: Route, asked: Asked) -> Response:
        try:
            answer = route.answer(self._site, asked)
        except Exception as error:  # noqa: BLE001 (described below, a bug as well)
            return self._tell(error)
        if isinstance(answer, Picture):
            return Response(answer.svg.encode(errors="replace"), media_type="image/svg+xml")
        if isinstance(answer, Created):
            return self._write(answer.document, 201)
        return self._write(answer, 200)

    def _write(self, document: dict[str, Any], status: int) -> Response:
        return Response(write_json(document, self._site.mask), status, media_type=_JSON)

    def _tell(self, error: Exception) -> Response:
        status, document = tell_error(self._describe(error), self._site.mask)
        return Response(write_json(document), status, media_type=_JSON)

    async def _tell_missing(self, _request: Request, _error: Exception) -> Response:
        return self._tell(_no_such_route())

    async def _tell_method(self, request: Request, _error: Exception) -> Response:
        return self._tell(_no_such_method(request.method))

    async def _tell_bug(self, _request: Request, error: Exception) -> Response:
        return self._tell(error)

    async def _asset(self, request: Request) -> Response:
        found = read_asset(request.url.path) if is_asset(request.url.path) else None
        if found is None:
            return self._tell(_no_such_route())
        return Response(found[1], media_type=found[0])

    async def _chat(self, request: Request) -> Response:
        """Answer a chat program, as `uwf mcp --workflows` does."""
        try:
            body = await _read_body(request)
            status, reply = await self._chats.run(
                lambda: self._chat_server.answer_http(body, request.headers)
            )
        except BodyRefused as error:
            return refuse(error.refusal)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:  # noqa: BLE001 (described below, a bug as well)
            return self._tell(error)
        if reply is None:
            return Response(status_code=status)
        # Keys and values come back as they were given: nothing is spelled out.
        content = json.dumps(mask_json(reply, self._site.mask))
        return Response(content, status, media_type=_JSON)

    async def _stream(self, request: Request) -> Response:
        since = request.query_params.get("since")
        return StreamingResponse(self._lines(since), media_type="application/x-ndjson")

    async def _lines(self, since: str | None) -> AsyncIterator[bytes]:
        async for line in self._changes.follow(since):
            yield write_json(line) + b"\n"


def _choose(
    methods: dict[str, Endpoint],
) -> Endpoint:
    async def answer(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await methods[method](request)

    return answer


def _read_query(request: Request, route: Route) -> dict[str, str]:
    query = dict(request.query_params.multi_items())
    for name in query.keys() - set(route.query):
        raise bad_body(name, "there is no such name in the query")
    return query


async def _read_body(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request; its bytes are counted while they are read."""
    content = bytearray()
    try:
        async with asyncio.timeout(_BODY_S):
            async for chunk in request.stream():
                content += chunk
                if len(content) > MOST_BODY_BYTES:
                    raise BodyRefused(TOO_LARGE)
    except TimeoutError:
        raise BodyRefused(_TOO_SLOW) from None
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise bad_body("", f"it is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise bad_body("", "an object is needed")
    return value


def refuse(refusal: Refusal) -> Response:
    """Return the answer to a request that is refused; the connection ends, its body is not read."""
    headers = {"connection": "close"}
    return Response(write_refusal(refusal), refusal.status, headers=headers, media_type=_JSON)


def write_refusal(refusal: Refusal) -> bytes:
    error = {"code": refusal.code, "message": refusal.message, "hint": refusal.hint}
    return write_json({"error": error})


class _Guarded:
    """Checks each request first, and adds the headers that every answer has."""

    def __init__(self, inner: ASGIApp, token: str) -> None:
        self._inner, self._token = inner, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        head = RequestHead(scope["method"], scope["path"], scope["headers"])
        refusal = check_head(head, self._token, is_open=is_asset(head.path))
        answer = self._inner if refusal is None else refuse(refusal)
        await answer(scope, receive, send_guarded)
