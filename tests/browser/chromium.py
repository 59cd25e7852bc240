"""Debian's Chromium by Playwright, for the tests and the benchmark."""

import importlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")

HINT = "tests/browser/install.sh gets it"


class NoBrowser(Exception):
    """Something is missing; the text names it."""


@contextmanager
def open_chromium(home: str) -> Iterator[Any]:
    """Start a Chromium, whose files go below *home*; end it at the end.

    Raises:
        NoBrowser: there is none, or no Playwright.
    """
    try:
        playwright: Any = importlib.import_module("playwright.sync_api")
    except ModuleNotFoundError as error:
        raise NoBrowser(f"no Playwright; {HINT}") from error
    named = os.environ.get("UWF_CHROMIUM")
    program = named or next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        raise NoBrowser(f"no chromium; {HINT}")
    # Chromium as root has no sandbox.
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    environ = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "TMPDIR": home}
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=program, args=arguments, env=environ)
        yield launched
        launched.close()
