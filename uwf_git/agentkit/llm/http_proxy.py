"""Find the proxy for a host in http_proxy, https_proxy, all_proxy and no_proxy, in either case.

This machine itself is always reached without a proxy.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from uwf_git.errors import BadUsage

_DEFAULT_PORT = 80


def _bad_proxy(name: str, problem: str) -> BadUsage:
    return BadUsage(
        f"{name} {problem}",
        code="bad-proxy",
        hint=f"for example: {name}=http://proxy.example.com:3128",
    )


class Proxy(NamedTuple):
    """An HTTP proxy."""

    host: str
    port: int
    login: str | None
    """``name:password``, or None."""


def find_proxy(
    scheme: Literal["http", "https"], host: str, port: int, environ: Mapping[str, str]
) -> Proxy | None:
    """Return the proxy for *host*, or None.

    Raises:
        BadUsage: the variable holds no URL of an HTTP proxy.
    """
    if _is_here(host) or _is_excepted(host, port, _get(environ, "no_proxy")[1]):
        return None
    for variable in (f"{scheme}_proxy", "all_proxy"):
        name, value = _get(environ, variable)
        if value:
            return _parse(name, value)
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


def _parse(name: str, value: str) -> Proxy:
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
    return Proxy(host, port or _DEFAULT_PORT, login)
