"""Post over HTTP by urllib3: kept-alive connections, proxies, a deadline, a limit of size.

A redirect is not followed: it would send the key to another host. An error quotes nothing of the
request but the host.
"""

import http.client
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Literal, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

import urllib3
import urllib3.connection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, LocationParseError

from uwf_git.errors import AgentFailed, BadUsage

HttpTrouble = Literal["unreachable", "unknown-host", "untrusted", "timed-out", "broken", "too-much"]

_PORTS = {"http": 80, "https": 443}

# A retry may succeed.
_TEMPORARY = {"unreachable", "broken"}


class NoReply(AgentFailed):
    code = "no-reply"

    def __init__(self, trouble: HttpTrouble, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}", host=where, trouble=trouble)
        self.trouble = trouble
        self.is_temporary = trouble in _TEMPORARY


def _bad_url(url: str, problem: str) -> BadUsage:
    return BadUsage(
        f"{url:.200} {problem}", code="bad-url", hint="for example: https://api.example.com/v1"
    )


class HttpRequest(NamedTuple):
    url: str
    headers: Mapping[str, str]
    body: bytes


class HttpReply(NamedTuple):
    status: int

    headers: Mapping[str, str]
    """Names in lower case."""

    body: bytes


def split_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise _bad_url(url, "is not a URL") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _bad_url(url, "is not a URL that begins with http:// or https://")
    if parts.username or parts.password:
        # Not quoted, since that would print the password.
        shown = f"{parts.scheme}://…@{parts.hostname}"
        raise _bad_url(shown, "holds a user name; put the key in an environment variable")
    return parts


def _bad_proxy(name: str, problem: str) -> BadUsage:
    return BadUsage(
        f"{name} {problem}",
        code="bad-proxy",
        hint=f"for example: {name}=http://proxy.example.com:3128",
    )


class Proxy(NamedTuple):
    host: str
    port: int
    login: str | None
    """``name:password``, or None."""


def find_proxy(
    scheme: Literal["http", "https"], host: str, port: int, environ: Mapping[str, str]
) -> Proxy | None:
    if _is_here(host) or _is_excepted(host, port, _get(environ, "no_proxy")[1]):
        return None
    for variable in (f"{scheme}_proxy", "all_proxy"):
        name, value = _get(environ, variable)
        if value:
            return _parse_proxy(name, value)
    return None


def _get(environ: Mapping[str, str], variable: str) -> tuple[str, str]:
    for name in (variable, variable.upper()):
        if environ.get(name):
            return name, environ[name].strip()
    return variable, ""


def _is_here(host: str) -> bool:
    return host == "localhost" or host.startswith("127.") or host == "::1"


def _is_excepted(host: str, port: int, exceptions: str) -> bool:
    for each in exceptions.lower().split(","):
        entry = each.strip().lstrip("*").lstrip(".")
        if each.strip() == "*":
            return True
        if entry and any(
            name == entry or name.endswith(f".{entry}") for name in (host, f"{host}:{port}")
        ):
            return True
    return False


def _parse_proxy(name: str, value: str) -> Proxy:
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise _bad_proxy(name, "is not a URL") from error
    if not host:
        raise _bad_proxy(name, "names no host")
    if parts.scheme != "http":
        raise _bad_proxy(name, f"names a proxy of the kind {parts.scheme[:20]}, not http")
    login = None
    if parts.username:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return Proxy(host, port or _PORTS["http"], login)


MAX_REPLY_BYTES = 32 * 1024 * 1024

_CONNECT_S = 15.0
_MOST_S = 3_600.0
_CHUNK_BYTES = 64 * 1024


class _Timed:
    """Shuts the connection when its time is over also while the head of a reply is read.

    The time limit of a socket bounds one read, and a head may drip, or be a hundred lines
    `100 Continue`. urllib3 sets the time that is left before it reads.
    """

    sock: socket.socket | None
    timeout: float | None

    def getresponse(self) -> Any:
        with _at_the_end(self.timeout, partial(_shut, self.sock)):
            return super().getresponse()  # type: ignore[misc]  # of urllib3's connection

    def _tunnel(self) -> None:
        with _at_the_end(self.timeout, partial(_shut, self.sock)):
            super()._tunnel()  # type: ignore[misc]  # of http.client's connection


class _Connection(_Timed, urllib3.connection.HTTPConnection):
    """A connection by http."""


class _TlsConnection(_Timed, urllib3.connection.HTTPSConnection):
    """A connection by https."""


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class HttpClient:
    """Posts requests; keeps connections open from one request to the next."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._managers: dict[tuple[str, Proxy | None], urllib3.PoolManager] = {}

    def post(self, request: HttpRequest, deadline: float) -> HttpReply:
        """Post once, and read the whole reply, until *deadline* on the monotonic clock."""
        parts = split_url(request.url)
        try:
            return self._post(request, parts, deadline)
        except NoReply as failure:
            raise NoReply(failure.trouble, parts.netloc, failure.message) from failure
        except (OSError, HTTPError, http.client.HTTPException, UnicodeError) as error:
            trouble, problem = _describe(error, is_late=time.monotonic() >= deadline)
            raise NoReply(trouble, parts.netloc, problem) from error

    def _post(self, request: HttpRequest, parts: SplitResult, deadline: float) -> HttpReply:
        manager = self._find_manager(parts)
        left_s = _left_s(deadline)
        response = manager.urlopen(
            "POST",
            _build_ascii_url(parts),
            redirect=False,
            retries=False,
            body=request.body,
            headers={"Accept-Encoding": "identity", **request.headers},
            timeout=urllib3.Timeout(connect=min(_CONNECT_S, left_s), total=left_s),
            preload_content=False,
            decode_content=False,
        )
        try:
            with _at_the_end(_left_s(deadline), response.shutdown):
                body = _read(response)
        except BaseException:
            response.close()
            raise
        # A reply without a length ends where the connection is shut.
        _left_s(deadline)
        headers = {name.lower(): value for name, value in response.headers.items()}
        return HttpReply(response.status, headers, body)

    def _find_manager(self, parts: SplitResult) -> urllib3.PoolManager:
        port = parts.port or _PORTS[parts.scheme]
        scheme: Literal["http", "https"] = "https" if parts.scheme == "https" else "http"
        proxy = find_proxy(scheme, parts.hostname or "", port, self._environ)
        key = (scheme, proxy)
        if key not in self._managers:
            self._managers[key] = self._build_manager(scheme, proxy)
        return self._managers[key]

    def _build_manager(self, scheme: str, proxy: Proxy | None) -> urllib3.PoolManager:
        context = None
        if scheme == "https":
            cafile = self._environ.get("SSL_CERT_FILE") or None
            context = ssl.create_default_context(cafile=cafile)
        if proxy is None:
            manager = urllib3.PoolManager(ssl_context=context)
        else:
            url = f"http://{proxy.host}:{proxy.port}"
            login = b64encode((proxy.login or "").encode()).decode()
            headers = {"Proxy-Authorization": f"Basic {login}"} if proxy.login else {}
            manager = urllib3.ProxyManager(url, proxy_headers=headers, ssl_context=context)
        manager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
        return manager


def _build_ascii_url(parts: SplitResult) -> str:
    """Return the URL with an ASCII host name: urllib3 encodes others only with another package."""
    host = (parts.hostname or "").encode("idna").decode()
    bracketed = f"[{host}]" if ":" in host else host
    port = "" if parts.port is None else f":{parts.port}"
    return parts._replace(netloc=bracketed + port, fragment="").geturl()


@contextmanager
def _at_the_end(seconds: float | None, shut: Callable[[], None]) -> Iterator[None]:
    """Call *shut* after so many seconds: a limit of the socket bounds one read only."""
    timer = threading.Timer(_MOST_S if seconds is None else seconds, shut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _shut(sock: socket.socket | None) -> None:
    if sock is not None:
        with suppress(OSError):
            # Both ways: shut for reading only, Linux hands on what still comes. Not the method
            # of SSLSocket, which gives up its TLS under the reader.
            socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _read(response: urllib3.BaseHTTPResponse) -> bytes:
    pieces = bytearray()
    # Not stream(): it keeps the line before a chunk whole, however long that is.
    while piece := response.read(_CHUNK_BYTES):
        pieces += piece
        if len(pieces) > MAX_REPLY_BYTES:
            most = MAX_REPLY_BYTES // 2**20
            raise NoReply("too-much", "read", f"the reply is longer than {most} MiB")
    return bytes(pieces)


def _left_s(deadline: float) -> float:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _describe(error: Exception, *, is_late: bool) -> tuple[HttpTrouble, str]:
    """Describe *error* in our words; its own text could quote the request."""
    cause = _find_cause(error)
    if isinstance(cause, socket.gaierror | UnicodeError | LocationParseError):
        return _describe_name(cause)
    if is_late and not isinstance(error, ConnectTimeoutError):
        return "timed-out", "no complete reply within the time limit"
    if isinstance(cause, ssl.SSLError):
        return _describe_tls(cause)
    if isinstance(cause, TimeoutError):
        # Before the deadline only connecting has a limit, with the TLS handshake.
        return "unreachable", "the host does not accept the connection"
    if isinstance(cause, HTTPError | http.client.HTTPException):
        return "broken", "the connection was closed before the reply was complete"
    return _describe_system(cause)


def _describe_system(error: BaseException) -> tuple[HttpTrouble, str]:
    if isinstance(error, ConnectionRefusedError):
        return "unreachable", "connection refused"
    if isinstance(error, ConnectionError):
        return "broken", "the connection was closed before the reply was complete"
    if isinstance(error, FileNotFoundError):
        return "untrusted", "the file named by SSL_CERT_FILE does not exist"
    # A proxy's refusal has no number, but a text: Tunnel connection failed: 407 …
    return "unreachable", (getattr(error, "strerror", None) or str(error)).lower()[:200]


def _find_cause(error: BaseException) -> BaseException:
    """Return the error that urllib3 wrapped, as a cause or as an argument."""
    while isinstance(error, HTTPError):
        inner = [each for each in error.args if isinstance(each, Exception)]
        cause = error.__cause__ or (inner[-1] if inner else None)
        if cause is None:
            break
        error = cause
    return error


def _describe_name(error: BaseException) -> tuple[HttpTrouble, str]:
    if not isinstance(error, socket.gaierror):
        return "unknown-host", "this cannot be a host name"
    if error.errno == socket.EAI_AGAIN:
        return "unreachable", "its name cannot be resolved now"
    return "unknown-host", "there is no such host"


def _describe_tls(error: ssl.SSLError) -> tuple[HttpTrouble, str]:
    if isinstance(error, ssl.SSLCertVerificationError):
        return "untrusted", f"its certificate is not trusted: {error.verify_message}"
    return "untrusted", f"no secure connection: {(error.reason or 'TLS failed').lower()}"
