"""What a route returns, and how it is written: JSON whose texts are spelled out.

Controls and marks of direction in foreign text must not reach the page as they are. What has to
stay exact, since it is sent back or is a schema, is wrapped in ``Exact``.
"""

import hmac
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from uwf_git.commands.inspect.story import Mask, mask_json
from uwf_git.engine.picture.draw import STYLE_SHEET
from uwf_git.errors import BadUsage, Failure
from uwf_git.model.text import name_store, visible_block, visible_line
from uwf_git.store.store import Store
from uwf_git.surroundings import read_process_start

_STATUS = {1: 422, 2: 400, 3: 422, 4: 409}
_STATUS_OF = {
    "no-such-thread": 404, "not-a-thread-id": 404, "no-such-workflow": 404, "workflow-removed": 404,
    "no-such-entry": 404, "no-draft-thread": 404, "no-such-route": 404, "no-such-method": 405,
    "too-busy": 503, "bad-body": 400, "system-error": 500,
}  # fmt: skip


class Exact(NamedTuple):
    value: Any


class Html(str):
    """HTML that `web` made: its texts are masked and spelled already."""

    __slots__ = ()


class Created(NamedTuple):
    document: dict[str, Any]


class Picture(NamedTuple):
    svg: str


class Asked(NamedTuple):
    params: Mapping[str, str]
    query: Mapping[str, str]
    body: dict[str, Any]


Describe = Callable[[BaseException], Failure]
"""Tells an error as the command line would."""


def bad_body(name: str, problem: str) -> BadUsage:
    return BadUsage(
        f"{name or 'the body'}: {problem}",
        code="bad-body",
        hint="this is a fault of the page: load it again",
        details=[{"pointer": f"/{name}" if name else "", "message": problem}],
    )


def take_text(body: Mapping[str, Any], name: str, *, needed: bool = False) -> str:
    value = body.get(name)
    if value is None and not needed:
        return ""
    if not isinstance(value, str):
        raise bad_body(name, "a text is needed")
    return value


def check_names(body: Mapping[str, Any], *known: str) -> None:
    for name in body.keys() - set(known):
        raise bad_body(name, "there is no such field")


def tell_error(told: Failure, mask: Mask, path: str) -> tuple[int, dict[str, Any]]:
    status = _STATUS_OF.get(told.code) or _STATUS.get(told.exit_status, 500)
    hint = name_store(told.hint or "", path) or None
    error: dict[str, Any] = {"code": told.code, "message": told.message, "hint": hint}
    details = told.facts.get("details")
    error |= {"details": details} if details else {}
    return status, {"error": mask_json(error, mask)}


def write_json(value: Any, mask: Mask | None = None) -> bytes:
    """Return *value* as JSON: its texts spelled out, and masked by *mask* unless they are HTML."""
    text = json.dumps(_spell(value, mask), ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")


def _spell(value: Any, mask: Mask | None) -> Any:
    if isinstance(value, Exact):
        return value.value
    if isinstance(value, Html):
        return str(value)
    if isinstance(value, str):
        return visible_block(value if mask is None else mask(value))
    if isinstance(value, Mapping):
        return {visible_line(str(name)): _spell(each, mask) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_spell(each, mask) for each in value]
    return value


# The files of the page: plain ones of the package, and the style sheet of pictures.

FOLDER = os.path.join(os.path.dirname(__file__), "assets")

_FILES = {"/": "index.html", "/app.js": "app.js", "/app.css": "app.css", "/icon.svg": "icon.svg"}
_PICTURES = "/picture.css"
_MODULE = re.compile(r"/modules/[a-z0-9-]+\.js")
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}

OPEN_PATHS = (*_FILES, _PICTURES)
"""Paths that need no token; besides these, the modules."""


def is_asset(path: str) -> bool:
    """Check whether *path* leads to a file of the page, which holds no data."""
    return path in OPEN_PATHS or _MODULE.fullmatch(path) is not None


def read_asset(path: str) -> tuple[str, bytes] | None:
    if path == _PICTURES:
        return _TYPES["css"], STYLE_SHEET.encode()
    name = _FILES.get(path, path[1:])
    try:
        with open(os.path.join(FOLDER, *name.split("/")), "rb") as file:
            return _TYPES[name.rpartition(".")[2]], file.read()
    except FileNotFoundError:
        return None


# The file that opens the page: the token must not stand among the arguments of a browser.
#
# `ps` shows arguments to every user of the machine; a file of mode 0600 is read by its owner
# alone.

_NAME = re.compile(r"ui-([0-9]{1,10})\.html")


@contextmanager
def hold_redirect(store: Store, address: str) -> Iterator[str]:
    """Yield the path of a page that leads to *address*; it is removed at the end."""
    folder = store.local_path()
    os.makedirs(folder, exist_ok=True)
    _remove_left(folder)
    path = os.path.join(folder, f"ui-{os.getpid()}.html")
    with suppress(FileNotFoundError):
        os.unlink(path)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(
                '<!doctype html>\n<meta charset="utf-8">\n<title>uwf</title>\n'
                f'<meta http-equiv="refresh" content="0; url={address}">\n'
                f'<p><a href="{address}" rel="noreferrer">The page of uwf</a></p>\n'
            )
        yield path
    finally:
        with suppress(OSError):
            os.unlink(path)


def _remove_left(folder: str) -> None:
    for name in os.listdir(folder):
        found = _NAME.fullmatch(name)
        if found and read_process_start(int(found[1])) is None:
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))


# Who is answered: a browser of this machine, on the server's own page, with its token.
#
# Other pages in the same browser, other programs' pages on other ports, and names that were bound
# to 127.0.0.1 later (DNS rebinding) are refused before anything is read. Source: OWASP's cheat
# sheet on cross-site request forgery; https://www.w3.org/TR/fetch-metadata/.

MOST_BODY_BYTES = 4 * 1024**2

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
TOO_LARGE = Refusal(
    413, "too-large", f"the body is over {MOST_BODY_BYTES} bytes", "put it into a file, and name it"
)


def check_head(head: RequestHead, token: str, *, is_open: bool) -> Refusal | None:
    """Return why a request is refused, or None; *is_open* paths need no token."""
    hosts = head.values(b"host")
    if len(hosts) != 1 or _HOST.fullmatch(hosts[0]) is None:
        return OTHER_HOST
    if not _is_own_page(head, hosts[0]):
        return Refusal(403, "foreign-origin", "the request comes from another page", _OPEN)
    if not is_open and not _has_token(head.values(b"authorization"), token):
        problem = "the token is missing, or of an earlier start of the server"
        return Refusal(401, "no-token", problem, f"{_OPEN}, or start it again")
    return _check_body(head) if head.method == "POST" else None


def _is_own_page(head: RequestHead, host: str) -> bool:
    origins = head.values(b"origin")
    if any(origin.lower() != f"http://{host}".lower() for origin in origins):
        return False
    return {"same-origin", "none"}.issuperset(head.values(b"sec-fetch-site")) or _opens_page(head)


def _opens_page(head: RequestHead) -> bool:
    """Check whether a browser opens the page in a tab, from the file that leads to the page.

    To a browser that file is another site. The page holds no data, and no other page may frame it.
    """
    mode, kind = head.values(b"sec-fetch-mode"), head.values(b"sec-fetch-dest")
    is_get = head.method in {"GET", "HEAD"}
    return is_get and head.path == "/" and mode == ["navigate"] and kind == ["document"]


def _has_token(given: Sequence[str], token: str) -> bool:
    if len(given) != 1 or not given[0].lower().startswith(_BEARER):
        return False
    return hmac.compare_digest(given[0][len(_BEARER) :].strip().encode(), token.encode())


def _check_body(head: RequestHead) -> Refusal | None:
    kinds = head.values(b"content-type")
    if len(kinds) != 1 or _JSON.fullmatch(kinds[0].strip()) is None:
        return Refusal(415, "not-json", "the body of a POST is application/json")
    return None if all(map(_is_small, head.values(b"content-length"))) else TOO_LARGE


def _is_small(length: str) -> bool:
    return re.fullmatch("[0-9]{1,9}", length) is not None and int(length) <= MOST_BODY_BYTES
