"""The fixtures of the page's server: a small world, a site over it, and one process a module."""

import itertools
from collections.abc import Iterator
from functools import partial
from unittest import mock

import pytest
from commands.world import World, make_world
from seal import START_MS
from web.ui.asking import Ask, ask_route
from web.ui.page_server import PageServer, run_page

from uwf_git.commands import background
from uwf_git.commands.inspect.overview import Overview
from uwf_git.commands.inspect.story import make_mask
from uwf_git.library.players import StepMemory
from uwf_git.library.values import KeptStore, Place
from uwf_git.model.names import ThreadId
from uwf_git.web.ui.site import LiveLogs, Site, Stories


@pytest.fixture
def site(world: World) -> Site:
    """Return what the routes of a server on the world's store share."""
    caller, store = world.caller, world.store
    mask = make_mask(caller.environ)
    place = Place(
        store.path, caller.cwd, caller.environ, caller.now_ms, None, {}, KeptStore(), StepMemory()
    )
    return Site(
        place,
        world.new_id,
        mask,
        Overview(store, caller.environ),
        Stories(mask),
        LiveLogs(lambda: store, caller.environ),
        lambda: "start-0",
    )


@pytest.fixture
def ask(site: Site) -> Ask:
    """Return what asks a route: ``ask("POST", "/api/threads", body)``; the answer as it is sent."""
    return partial(ask_route, site)


@pytest.fixture
def start_driver(monkeypatch: pytest.MonkeyPatch) -> mock.Mock:
    """Start no driver: its `side_effect` says for each request what comes of it."""
    start = mock.Mock()
    monkeypatch.setattr(background, "start_driver", start)
    return start


@pytest.fixture(scope="module")
def shared_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Return the world of a module's server."""
    times, numbers = itertools.count(START_MS, 1000), itertools.count(1)
    return make_world(
        tmp_path_factory.mktemp("page"),
        times.__next__,
        lambda: ThreadId(f"01J000{next(numbers):020d}"),
    )


@pytest.fixture(scope="module")
def server(shared_world: World) -> Iterator[PageServer]:
    """Run the one server of a module."""
    with run_page(shared_world.store.path, shared_world.place) as running:
        yield running
