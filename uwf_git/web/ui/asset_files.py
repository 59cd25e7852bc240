"""The files of the page: plain ones of the package, and the style sheet of pictures."""

import os
import re

from uwf_git.engine.picture.svg import STYLE_SHEET

FOLDER = os.path.join(os.path.dirname(__file__), "assets")

_FILES = {
    "/": "index.html",
    "/app.js": "app.js",
    "/app.css": "app.css",
    "/icon.svg": "icon.svg",
}
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
