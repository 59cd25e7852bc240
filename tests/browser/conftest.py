"""Chromium by Playwright; a test that asks for it is skipped with the name of what is missing."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_MERMAID = Path(__file__).parents[2] / "build" / "browser" / "mermaid.min.js"
_HINT = "tests/browser/install.sh gets it"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A running Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason=f"no Playwright; {_HINT}")
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if program is None:
        pytest.skip(f"no chromium; {_HINT}")
    # Chromium as root has no sandbox.
    arguments = ["--no-sandbox"] if os.getuid() == 0 else []
    home = str(tmp_path_factory.mktemp("chromium"))
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(
            executable_path=program,
            args=arguments,
            env={**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "TMPDIR": home},
        )
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """An empty page."""
    opened = browser.new_page()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def mermaid() -> str:
    """The script of Mermaid."""
    if not _MERMAID.exists():
        pytest.skip(f"no Mermaid; {_HINT}")
    return _MERMAID.read_text()
