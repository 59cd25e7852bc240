"""Chromium by Playwright; a test that asks for it is skipped with the name of what is missing."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.ui import Server, Tab, serve
from commands.world import World, make_world

from uwf_git.model.thread_id import ThreadId

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
_BUILD = Path(__file__).parents[2] / "build" / "browser"
_HINT = "tests/browser/install.sh gets it"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A running Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason=f"no Playwright; {_HINT}")
    named = os.environ.get("UWF_CHROMIUM")
    program = named or next(filter(None, map(shutil.which, _PROGRAMS)), None)
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


def _read_script(name: str) -> str:
    path = _BUILD / f"{name}.min.js"
    if not path.exists():
        pytest.skip(f"no {name}; {_HINT}")
    return path.read_text()


@pytest.fixture(scope="session")
def mermaid() -> str:
    """The script of Mermaid."""
    return _read_script("mermaid")


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core."""
    return _read_script("axe")


@pytest.fixture
def world(tmp_path: Path, clock: Callable[[], int], thread_ids: Callable[[], ThreadId]) -> World:
    """An empty store, and a caller in a directory beside it."""
    return make_world(tmp_path, clock, thread_ids)


@pytest.fixture
def server(world: World) -> Iterator[Server]:
    """The server of the page, on the store of `world`."""
    pytest.importorskip("uvicorn", reason="no uvicorn; pip install -e '.[ui]'")
    pytest.importorskip("starlette", reason="no starlette; pip install -e '.[ui]'")
    with serve(world) as started:
        yield started


@pytest.fixture
def tab(browser: Any, server: Server) -> Iterator[Tab]:
    """A tab in a browser of its own, before it shows the page."""
    context = browser.new_context(reduced_motion="reduce")
    context.set_default_timeout(20_000)
    opened = Tab(context.new_page(), server)
    opened.listen()
    yield opened
    context.close()
