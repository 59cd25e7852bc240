"""Follow redirects of a web server as git does: those of the first question, a few, on the web.

What the user sends to one server alone (a password, `http.extraHeader`) is not sent to another.
"""

from collections.abc import Callable, Collection
from typing import Any
from urllib.parse import urljoin, urlsplit

from uwf_git.store.remotes.transport_errors import RemoteFailed
from uwf_git.store.remotes.url import RemoteUrl

Request = Callable[..., Any]

# As git, which tells curl so.
_MOST = 20

_REDIRECTS = (301, 302, 303, 307, 308)
_PORTS = {"http": 80, "https": 443}


def request_safely(
    request: Request,
    method: str,
    url: str,
    *,
    remote: RemoteUrl,
    private: Collection[str],
    **options: Any,
) -> Any:
    """Send a request by *request*, and follow redirects; return the answer of the last server.

    Headers with a name in *private* (but the user agent), and Authorization, go to the server of
    *remote* alone.

    Raises:
        RemoteFailed: it redirects without end, or to what is not on the web.
    """
    hidden = {"authorization", *(name.lower() for name in private)} - {"user-agent"}
    for _hop in range(_MOST + 1):
        headers = options.pop("headers", None) or {}
        if _origin(url) != _origin(remote.text):
            headers = {name: value for name, value in headers.items() if name.lower() not in hidden}
        options["headers"] = headers
        response = request(method, url, redirect=False, **options)
        place = response.headers.get("Location")
        if method != "GET" or response.status not in _REDIRECTS or not place:
            # dulwich sends what follows to where this came from.
            response.geturl = lambda final=url: final
            return response
        response.close()
        url = urljoin(url, place)
        if urlsplit(url).scheme not in _PORTS:
            raise RemoteFailed(remote, f"it redirects to {url[:200]}, which is not on the web")
    raise RemoteFailed(remote, "it redirects without end")


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)
