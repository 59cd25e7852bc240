"""Post over HTTP by urllib3: kept-alive connections, proxies, a deadline, a limit of size.

A redirect is not followed: it would send the key to another host. An error quotes nothing of the
request but the host.
"""

import http.client
import os
import re
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Literal, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

import urllib3
import urllib3.connection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, LocationParseError, ProxyError

from uwf_git.errors import AgentFailed, BadUsage
from uwf_git.model.text import parse_float

HttpTrouble = Literal["unreachable", "unknown-host", "untrusted", "timed-out", "broken", "too-much"]

_PORTS = {"http": 80, "https": 443}
_NO_TUNNEL = "tunnel connection failed: "


class NoReply(AgentFailed):
    code = "no-reply"

    def __init__(
        self, trouble: HttpTrouble, where: str, problem: str, *, hint: str | None = None
    ) -> None:
        super().__init__(f"{where}: {problem}", hint=hint, host=where, trouble=trouble)
        self.trouble = trouble
        # A proxy that is asked again with a wrong password may lock the account.
        self.is_temporary = trouble in {"unreachable", "broken"} and f"{_NO_TUNNEL}4" not in problem
        """Whether a retry may succeed."""


def _bad_url(url: str, problem: str) -> BadUsage:
    return BadUsage(
        f"{url:.200} {problem}", code="bad-url", hint="for example: https://api.example.com/v1"
    )


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


def find_proxy(scheme: str, host: str, port: int, environ: Mapping[str, str]) -> Proxy | None:
    is_here = host in {"localhost", "::1"} or host.startswith("127.")
    if is_here or _is_excepted(host, port, _get(environ, "no_proxy")[1]):
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


def _is_excepted(host: str, port: int, exceptions: str) -> bool:
    entries = [each.strip() for each in exceptions.lower().split(",")]
    ends = tuple("." + each.lstrip("*").lstrip(".") for each in entries if each.strip("*."))
    return "*" in entries or f".{host}".endswith(ends) or f".{host}:{port}".endswith(ends)


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
    return Proxy(f"[{host}]" if ":" in host else host, port or _PORTS["http"], login)


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
        with shut_after(self.timeout, partial(_shut, self.sock)):
            return super().getresponse()  # type: ignore[misc]  # of urllib3's connection

    def _tunnel(self) -> None:
        with shut_after(self.timeout, partial(_shut, self.sock)):
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
    """Posts to one URL; keeps connections open from one request to the next."""

    def __init__(self, url: str, environ: Mapping[str, str]) -> None:
        self._parts = split_url(url)
        self.where = self._parts.netloc
        self._environ = environ
        self._manager: urllib3.PoolManager | None = None

    def post(self, headers: Mapping[str, str], body: bytes, deadline: float) -> HttpReply:
        """Post once, and read the whole reply, until *deadline* on the monotonic clock."""
        try:
            self._manager = self._manager or _build_manager(self._parts, self._environ)
            left_s = _left_s(deadline)
            response = self._manager.urlopen(
                "POST",
                _build_ascii_url(self._parts),
                redirect=False,
                retries=False,
                body=body,
                headers={"Accept-Encoding": "identity", **headers},
                timeout=urllib3.Timeout(connect=min(_CONNECT_S, left_s), total=left_s),
                preload_content=False,
                decode_content=False,
            )
            try:
                with shut_after(_left_s(deadline), response.shutdown):
                    content = _read(response, self.where)
            except BaseException:
                response.close()
                raise
            # A reply without a length ends where the connection is shut.
            _left_s(deadline)
        except (OSError, HTTPError, http.client.HTTPException, UnicodeError) as error:
            trouble, problem = _describe(error, is_late=time.monotonic() >= deadline)
            proxy, hint = self._manager and self._manager.proxy, None
            if proxy and (isinstance(error, ProxyError) or problem.startswith(_NO_TUNNEL)):
                problem = f"its proxy {proxy.netloc}: {problem}"
                hint = f"see {self._parts.scheme}_proxy, all_proxy and no_proxy, also in capitals"
            raise NoReply(trouble, self.where, problem, hint=hint) from error
        named = {name.lower(): value for name, value in response.headers.items()}
        return HttpReply(response.status, named, content)


def _build_manager(parts: SplitResult, environ: Mapping[str, str]) -> urllib3.PoolManager:
    context = None
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=environ.get("SSL_CERT_FILE") or None)
    port = parts.port or _PORTS[parts.scheme]
    proxy = find_proxy(parts.scheme, parts.hostname or "", port, environ)
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
def shut_after(seconds: float | None, shut: Callable[[], None]) -> Iterator[None]:
    """Call *shut* after so many seconds: a limit of the socket bounds one read only.

    What was read until then raises TimeoutError: it ends where the connection was shut, and no TLS
    is begun on that (Python 3.11 and 3.12 leave such a socket open).
    """
    is_over = threading.Event()

    def end() -> None:
        is_over.set()
        shut()

    timer = threading.Timer(_MOST_S if seconds is None else seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if is_over.is_set():
        raise TimeoutError


def _shut(sock: socket.socket | None) -> None:
    if sock is not None:
        with suppress(OSError):
            # Both ways: shut for reading only, Linux hands on what still comes. Not the method
            # of SSLSocket, which gives up its TLS under the reader.
            socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _read(response: urllib3.BaseHTTPResponse, where: str) -> bytes:
    pieces = bytearray()
    # Not stream(): it keeps the line before a chunk whole, however long that is.
    while piece := response.read(_CHUNK_BYTES):
        pieces += piece
        if len(pieces) > MAX_REPLY_BYTES:
            most = MAX_REPLY_BYTES // 2**20
            raise NoReply("too-much", where, f"the reply is longer than {most} MiB")
    return bytes(pieces)


def _left_s(deadline: float) -> float:
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _describe(  # noqa: C901, PLR0911 (a case an error)
    error: Exception, *, is_late: bool
) -> tuple[HttpTrouble, str]:
    """Describe *error* in our words; its own text could quote the request."""
    cause = _find_cause(error)
    if isinstance(cause, socket.gaierror):
        if cause.errno == socket.EAI_AGAIN:
            return "unreachable", "its name cannot be resolved now"
        return "unknown-host", "there is no such host"
    if isinstance(cause, UnicodeError | LocationParseError):
        return "unknown-host", "this cannot be a host name"
    if is_late and not isinstance(error, ConnectTimeoutError):
        return "timed-out", "no complete reply within the time limit"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return "untrusted", f"its certificate is not trusted: {cause.verify_message}"
    if isinstance(cause, ssl.SSLError):
        return "untrusted", f"no secure connection: {(cause.reason or 'TLS failed').lower()}"
    if isinstance(cause, TimeoutError):
        # Before the deadline only connecting has a limit, with the TLS handshake.
        return "unreachable", "the host does not accept the connection"
    if isinstance(cause, ConnectionRefusedError):
        return "unreachable", "connection refused"
    if isinstance(cause, HTTPError | http.client.HTTPException | ConnectionError):
        return "broken", "the connection was closed before the reply was complete"
    if isinstance(cause, FileNotFoundError):
        return "untrusted", "the file named by SSL_CERT_FILE does not exist"
    # A proxy's refusal has no number, but a text: Tunnel connection failed: 407 …
    return "unreachable", (getattr(cause, "strerror", None) or str(cause)).lower()[:200]


def _find_cause(error: BaseException) -> BaseException:
    """Return the error that urllib3 wrapped, as a cause or as an argument."""
    while isinstance(error, HTTPError):
        inner = [each for each in error.args if isinstance(each, Exception)]
        cause = error.__cause__ or (inner[-1] if inner else None)
        if cause is None:
            break
        error = cause
    return error


# Post again when the endpoint is busy or unreachable, until the deadline.
#
# Each wait is reported before it begins. An endpoint that says when to come back is not called
# earlier.

# 529: overloaded (Anthropic). 409 and 425 are for other kinds of requests.
_TOO_MANY = 429
_RETRIED = {408, 429, 500, 502, 503, 504, 520, 522, 524, 529}


_MOST_TRIES = 5

# If the endpoint asks for more, do not wait: the attempt fails and says until when.
_LONGEST_WAIT_S = 60.0


def post_with_retries(
    client: HttpClient,
    headers: Mapping[str, str],
    body: bytes,
    *,
    deadline: float,
    say: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> HttpReply:
    """Post until a retry would not help, or the tries or the time are used up."""
    for tries in range(1, _MOST_TRIES + 1):
        reply: HttpReply | None = None
        # Doubled each time, unless the endpoint names a wait; 0.75 to 1.25 of it, so that agents
        # that failed together do not retry together.
        wait_s = 0.5 * 2 ** (tries - 1) * (0.75 + int.from_bytes(os.urandom(2), "big") / 0x1FFFF)
        try:
            reply = client.post(headers, body, deadline)
            # An empty account is a 429 too; waiting does not help there.
            if reply.status not in _RETRIED or b"insufficient_quota" in reply.body:
                return reply
            problem = f"{client.where} answers {reply.status}"
            is_limited = reply.status == _TOO_MANY
            told_s = find_wait_s(reply.headers, now_s=time.time(), is_limited=is_limited)
            wait_s = told_s or wait_s
        except NoReply as failure:
            if not failure.is_temporary or tries == _MOST_TRIES:
                raise
            problem = failure.message
            if time.monotonic() + wait_s >= deadline:
                raise
        is_last = tries == _MOST_TRIES or wait_s > _LONGEST_WAIT_S
        if reply is not None and (is_last or time.monotonic() + wait_s >= deadline):
            return reply
        say(f"{problem}; trying again in {wait_s:.1f} s (try {tries + 1} of {_MOST_TRIES})")
        sleep(wait_s)
    raise AssertionError("the last try returns or raises")


_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

_DURATIONS = ("x-ratelimit-reset-requests", "x-ratelimit-reset-tokens")
_MOMENTS = [
    f"anthropic-ratelimit-{quota}-reset"
    for quota in ("requests", "tokens", "input-tokens", "output-tokens")
]

# Endpoints mean seconds or milliseconds since 1970, or seconds from now.
_A_YEAR_S = 366 * 86400
_MS_FROM = 100_000_000_000


def find_wait_s(
    headers: Mapping[str, str], *, now_s: float, is_limited: bool = False
) -> float | None:
    """Return how many seconds to wait by *headers* in lower case; None if no header says it.

    If it *is_limited*, until a used-up quota is full again.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        wait_s = parse_float(headers.get(name, ""))
        if wait_s is not None:
            return wait_s * unit
    date = _moment(parsedate_to_datetime, headers.get("retry-after", ""))
    if date is not None:
        return max(0.0, date - now_s)
    return find_quota_wait_s(headers, now_s=now_s) if is_limited else None


def find_quota_wait_s(headers: Mapping[str, str], *, now_s: float) -> float | None:
    """Return in how many seconds a used-up quota is full again; None if no header says it."""
    waits = [_duration(text) for text in _used_up(_DURATIONS, headers)]
    moments = [_moment(datetime.fromisoformat, text) for text in _used_up(_MOMENTS, headers)]
    waits += [None if moment is None else moment - now_s for moment in moments]
    epoch = parse_float(headers.get("x-ratelimit-reset", ""))
    if epoch is not None:
        seconds = epoch / 1000 if epoch >= _MS_FROM else epoch
        waits.append(seconds if seconds < _A_YEAR_S else seconds - now_s)
    told = [wait for wait in waits if wait is not None]
    return max(0.0, *told) if told else None


def _used_up(resets: Sequence[str], headers: Mapping[str, str]) -> list[str]:
    # Beside each is a header that says what is left: only a used-up quota means waiting.
    left = {name: headers.get(name.replace("reset", "remaining"), "0") for name in resets}
    return [headers[name] for name in resets if name in headers and left[name].strip() == "0"]


def _duration(text: str) -> float | None:
    """Read ``6m0.5s``."""
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        return parse_float(text)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _moment(parse: Callable[[str], datetime], text: str) -> float | None:
    try:
        return parse(text).timestamp()
    except (ValueError, OverflowError):
        return None
