"""What a route returns, and how it is written: JSON whose texts are spelled out.

Controls and marks of direction in foreign text must not reach the page as they are. What has to
stay exact, since it is sent back or is a schema, is wrapped in ``Exact``.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from uwf_git.commands.inspect.story import Mask, mask_json
from uwf_git.engine.picture.draw import STYLE_SHEET
from uwf_git.errors import BadUsage
from uwf_git.model.problem import Failure
from uwf_git.model.text import visible_block, visible_line
from uwf_git.processes import read_process_start
from uwf_git.store.store import Store

_STATUS = {1: 422, 2: 400, 3: 422, 4: 409}
_MISSING = frozenset(
    {"no-such-thread", "not-a-thread-id", "no-such-workflow", "workflow-removed", "no-such-entry",
     "no-draft-thread", "no-such-route"}
)  # fmt: skip
_STATUS_OF = {"too-busy": 503, "no-such-method": 405, "bad-body": 400, "system-error": 500}


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


def tell_error(told: Failure, mask: Mask) -> tuple[int, dict[str, Any]]:
    status = _STATUS.get(told.exit_status, 500)
    if told.code in _MISSING:
        status = 404
    error = {"code": told.code, "message": told.message, "hint": told.hint}
    details = told.facts.get("details")
    error |= {"details": details} if details else {}
    return _STATUS_OF.get(told.code, status), {"error": mask_json(error, mask)}


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
