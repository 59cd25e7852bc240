"""Chromium by Playwright; a test that asks for it is skipped with the name of what is missing."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from browser.chromium import HINT, NoBrowser, open_chromium
from browser.ui import Server, Tab, listen, serve
from commands.conftest import world
from commands.world import World

__all__ = ["world"]

_BUILD = Path(__file__).parents[2] / "build" / "browser"


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A running Chromium."""
    home = str(tmp_path_factory.mktemp("chromium"))
    with ExitStack() as stack:
        try:
            launched = stack.enter_context(open_chromium(home))
        except NoBrowser as missing:
            pytest.skip(str(missing))
        yield launched


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """An empty page."""
    opened = browser.new_page()
    yield opened
    opened.close()


def _read_script(name: str) -> str:
    path = _BUILD / f"{name}.min.js"
    if not path.exists():
        pytest.skip(f"no {name}; {HINT}")
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
    listen(opened.page, opened.heard, server.origin)
    yield opened
    context.close()
