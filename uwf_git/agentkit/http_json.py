"""One POST over HTTP, and what came back.

Owns: the connection: its time limits, TLS, the way through a proxy, how much is read.
Knows nothing of: models, keys, trying again.
Always true: a redirect is not followed, since it would take a key to somebody else; no error
quotes anything of the request but where it went.
"""

import http.client
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple
from urllib.parse import SplitResult, urlsplit

from uwf_git.agentkit.http_proxy import Proxy, find_proxy
from uwf_git.errors import AgentFailed, BadUsage

MAX_REPLY_BYTES = 32 * 1024 * 1024

_CONNECT_S = 15.0
_CHUNK_BYTES = 64 * 1024
_PORTS = {"http": 80, "https": 443}

Trouble = Literal["unreachable", "unknown-host", "untrusted", "timed-out", "broken", "too-much"]

# What may be better in a moment.
_TEMPORARY = {"unreachable", "broken"}


class NoReply(AgentFailed):
    """The host gave no reply, or no whole one."""

    code = "no-reply"

    def __init__(self, trouble: Trouble, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}", host=where, trouble=trouble)
        self.trouble = trouble
        self.is_temporary = trouble in _TEMPORARY


class BadUrl(BadUsage):
    """A URL that nothing can be posted to."""

    code = "bad-url"

    def __init__(self, url: str, problem: str) -> None:
        super().__init__(f"{url:.200} {problem}", hint="for example: https://api.example.com/v1")


class HttpRequest(NamedTuple):
    """What is posted, and where."""

    url: str
    headers: Mapping[str, str]
    body: bytes


class HttpReply(NamedTuple):
    """What came back, whatever its status."""

    status: int

    headers: Mapping[str, str]
    """Their names in lower case."""

    body: bytes


def split_url(url: str) -> SplitResult:
    """Take *url* apart.

    Raises:
        BadUrl: it is no URL of a web server.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise BadUrl(url, "is no URL") from error
    if parts.scheme not in _PORTS or not parts.hostname:
        raise BadUrl(url, "is no URL that begins with http:// or https://")
    if parts.username or parts.password:
        # Not quoted: that would print the password.
        shown = f"{parts.scheme}://…@{parts.hostname}"
        raise BadUrl(shown, "holds a user name, and a key comes from a variable")
    return parts


def post(request: HttpRequest, *, deadline: float, environ: Mapping[str, str]) -> HttpReply:
    """Post once, and read the reply to its end.

    *deadline* is on the monotonic clock, and holds for everything together.

    Raises:
        NoReply: there was none, or no whole one, by then.
        BadUrl, BadProxy: it cannot even be tried.
    """
    parts = split_url(request.url)
    where = parts.netloc
    try:
        connection, path, headers = _prepare(parts, request.headers, environ)
        replies = _remember_replies(connection)
        try:
            return _exchange(connection, path, headers, request.body, deadline)
        finally:
            connection.close()
            for reply in replies:
                reply.close()
    except NoReply as failure:
        raise NoReply(failure.trouble, where, failure.message) from failure
    except (OSError, http.client.HTTPException, UnicodeError) as error:
        trouble, problem = _tell(error)
        raise NoReply(trouble, where, problem) from error


def _remember_replies(connection: http.client.HTTPConnection) -> list[http.client.HTTPResponse]:
    """List the replies that *connection* will have had; the library closes all but a refused one.

    A proxy's refusal to connect us on keeps its socket open for as long as the error is about.
    """
    replies: list[http.client.HTTPResponse] = []

    def remember(*given: Any, **named: Any) -> http.client.HTTPResponse:
        replies.append(http.client.HTTPResponse(*given, **named))
        return replies[-1]

    # Whatever makes a reply will do for the library, which types it as the class.
    connection.response_class = remember  # type: ignore[assignment]
    return replies


def _prepare(
    parts: SplitResult, headers: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[http.client.HTTPConnection, str, dict[str, str]]:
    """Give a connection that is not open yet, and what to say on it."""
    host = parts.hostname or ""
    is_secure = parts.scheme == "https"
    port = parts.port or _PORTS[parts.scheme]
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    proxy = find_proxy("https" if is_secure else "http", host, port, environ)
    sent = {"Accept-Encoding": "identity", "Connection": "close", **headers}
    if is_secure:
        context = ssl.create_default_context(cafile=environ.get("SSL_CERT_FILE") or None)
        if proxy is None:
            return http.client.HTTPSConnection(host, port, context=context), path, sent
        secure = http.client.HTTPSConnection(proxy.host, proxy.port, context=context)
        secure.set_tunnel(host, port, headers=_authorize(proxy))
        return secure, path, sent
    if proxy is None:
        return http.client.HTTPConnection(host, port), path, sent
    whole = f"http://{parts.netloc}{path}"
    return http.client.HTTPConnection(proxy.host, proxy.port), whole, sent | _authorize(proxy)


def _authorize(proxy: Proxy) -> dict[str, str]:
    if proxy.login is None:
        return {}
    import base64  # noqa: PLC0415 (few proxies want a login)

    return {"Proxy-Authorization": f"Basic {base64.b64encode(proxy.login.encode()).decode()}"}


def _exchange(
    connection: http.client.HTTPConnection,
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    deadline: float,
) -> HttpReply:
    connection.timeout = min(_CONNECT_S, _left_s(deadline))
    try:
        connection.connect()
    except TimeoutError as error:
        raise NoReply("unreachable", "connect", "it does not take our connection") from error
    line = connection.sock
    line.settimeout(_left_s(deadline))
    connection.request("POST", path, body=body, headers=dict(headers))
    with connection.getresponse() as response:
        told = {name.lower(): value for name, value in response.getheaders()}
        return HttpReply(response.status, told, _read(response, line, deadline))


def _read(response: http.client.HTTPResponse, line: socket.socket, deadline: float) -> bytes:
    """Read the body in pieces: a limit for one piece alone would let a slow one go on for ever."""
    pieces = bytearray()
    while True:
        left_s = _left_s(deadline)
        with suppress(OSError):
            line.settimeout(left_s)
        piece = response.read1(_CHUNK_BYTES)
        if not piece:
            break
        pieces += piece
        if len(pieces) > MAX_REPLY_BYTES:
            most = MAX_REPLY_BYTES // 2**20
            raise NoReply("too-much", "read", f"the reply is longer than {most} MiB")
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return bytes(pieces)


def _left_s(deadline: float) -> float:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _tell(error: OSError | http.client.HTTPException | UnicodeError) -> tuple[Trouble, str]:
    """Say in a few words what *error* means; never with its own, where they could quote us."""
    if isinstance(error, socket.gaierror | UnicodeError):
        return _tell_name(error)
    if isinstance(error, ssl.SSLError):
        return _tell_tls(error)
    if isinstance(error, TimeoutError):
        return "timed-out", "no whole reply within the time"
    if isinstance(error, ConnectionRefusedError):
        return "unreachable", "connection refused"
    if isinstance(error, http.client.HTTPException | ConnectionError):
        return "broken", "the connection was closed before the reply was whole"
    if isinstance(error, FileNotFoundError):
        return "untrusted", "the file named by SSL_CERT_FILE is not there"
    # A proxy's refusal has no number, but a sentence: Tunnel connection failed: 407 …
    return "unreachable", (error.strerror or str(error)).lower()[:200]


def _tell_name(error: socket.gaierror | UnicodeError) -> tuple[Trouble, str]:
    if isinstance(error, UnicodeError):
        return "unknown-host", "no host can have that name"
    if error.errno == socket.EAI_AGAIN:
        return "unreachable", "its name cannot be looked up now"
    return "unknown-host", "there is no such host"


def _tell_tls(error: ssl.SSLError) -> tuple[Trouble, str]:
    if isinstance(error, ssl.SSLCertVerificationError):
        return "untrusted", f"its certificate is not trusted: {error.verify_message}"
    return "untrusted", f"no secure connection: {(error.reason or 'TLS failed').lower()}"
