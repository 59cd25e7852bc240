"""Who is answered: a browser of this machine, on the server's own page, with its token.

Other pages in the same browser, other programs' pages on other ports, and names that were bound to
127.0.0.1 later (DNS rebinding) are refused before anything is read. Source: OWASP's cheat sheet on
cross-site request forgery; https://www.w3.org/TR/fetch-metadata/.
"""

import hmac
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

MOST_BODY_BYTES = 64 * 1024

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types uwf"
)
HEADERS: Sequence[tuple[bytes, bytes]] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""What every answer has. There is no CORS header: no other page may read anything."""

_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?", re.IGNORECASE)
_JSON = re.compile(r"application/json\s*(?:;\s*charset\s*=\s*\"?utf-8\"?\s*)?", re.IGNORECASE)
_BEARER = "bearer "
_SITES = frozenset({"same-origin", "none"})


class Refusal(NamedTuple):
    """Why a request gets no answer."""

    status: int
    code: str
    message: str
    hint: str | None = None


class RequestHead(NamedTuple):
    """What is known of a request before its body."""

    method: str
    path: str
    headers: Sequence[tuple[bytes, bytes]]
    """With lower-case names."""

    def values(self, name: bytes) -> list[str]:
        """Return the values of a header, in order."""
        return [value.decode("latin-1") for each, value in self.headers if each == name]


_OPEN = "open the address that `uwf ui` printed"
OTHER_HOST = Refusal(
    421, "foreign-host", "this is the page of `uwf ui`, and has another address", _OPEN
)
_OTHER_ORIGIN = Refusal(403, "foreign-origin", "the request comes from another page", _OPEN)
_NO_TOKEN = Refusal(
    401,
    "no-token",
    "the token is missing, or of an earlier start of the server",
    f"{_OPEN}, or start it again",
)
TOO_LARGE = Refusal(413, "too-large", f"the body is larger than {MOST_BODY_BYTES} bytes")
NOT_JSON = Refusal(415, "not-json", "the body of a POST is application/json")


def check_head(head: RequestHead, token: str, *, is_open: bool) -> Refusal | None:
    """Return why a request is refused, or None; *is_open* paths need no token."""
    hosts = head.values(b"host")
    if len(hosts) != 1 or _HOST.fullmatch(hosts[0]) is None:
        return OTHER_HOST
    if not _is_own_page(head, hosts[0]):
        return _OTHER_ORIGIN
    if not is_open and not _has_token(head.values(b"authorization"), token):
        return _NO_TOKEN
    return _check_body(head) if head.method == "POST" else None


def _is_own_page(head: RequestHead, host: str) -> bool:
    origins = head.values(b"origin")
    if any(origin.lower() != f"http://{host}".lower() for origin in origins):
        return False
    return _SITES.issuperset(head.values(b"sec-fetch-site")) or _opens_page(head)


def _opens_page(head: RequestHead) -> bool:
    """Check whether a browser opens the page in a tab, from the file that leads to the page.

    To a browser that file is another site. The page holds no data, and no other page may frame it.
    """
    mode, kind = head.values(b"sec-fetch-mode"), head.values(b"sec-fetch-dest")
    is_get = head.method in {"GET", "HEAD"}
    return is_get and head.path == "/" and mode == ["navigate"] and kind == ["document"]


def _has_token(given: Iterable[str], token: str) -> bool:
    words = [*given]
    if len(words) != 1 or not words[0].lower().startswith(_BEARER):
        return False
    return hmac.compare_digest(words[0][len(_BEARER) :].strip().encode(), token.encode())


def _check_body(head: RequestHead) -> Refusal | None:
    kinds = head.values(b"content-type")
    if len(kinds) != 1 or _JSON.fullmatch(kinds[0].strip()) is None:
        return NOT_JSON
    lengths = head.values(b"content-length")
    if not all(_is_small(each) for each in lengths):
        return TOO_LARGE
    return None


def _is_small(length: str) -> bool:
    return re.fullmatch("[0-9]{1,9}", length) is not None and int(length) <= MOST_BODY_BYTES
