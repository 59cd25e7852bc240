"""Reports in Chromium: they ask for nothing, run nothing, and fit light, dark, wide and narrow."""

from collections.abc import Callable
from typing import Any

import pytest
from browser.ui import RIGHT_TO_LEFT, listen, reads_right_to_left
from commands.world import World
from store.small_packs import lose
from web.allowed import HOSTILE_SIGNS, find_foreign
from web.stories import SECRET, tell_branches, tell_hostile, tell_long, tell_waiting, tell_work

from uwf_git.commands.inspect.graph import view_report
from uwf_git.model.names import ThreadId
from uwf_git.web.report import render_report

_MOST_BYTES = 5_000_000
_ELEMENTS = """() => [...document.querySelectorAll('*')].map(each => [
    each.localName, Object.fromEntries([...each.attributes].map(a => [a.name, a.value]))])"""
_OPEN = "() => document.querySelectorAll('details').forEach(each => { each.open = true; })"
# Wider than the window: only what scrolls by itself may be.
_TOO_WIDE = """() => [...document.querySelectorAll('body *')].filter(each =>
    each.getBoundingClientRect().right > innerWidth + 1 && !each.closest('.wide')
    ).map(each => each.outerHTML.slice(0, 80))"""


@pytest.fixture
def said(page: Any) -> list[str]:
    """Collect what the page asks for, says or shows."""
    heard: list[str] = []
    listen(page, heard)
    return heard


def tell_damaged(world: World) -> ThreadId:
    thread = tell_work(world)
    lose(world.store, view_report(world.store, thread, {}).document["entries"][4]["commit"])
    return thread


STORIES = [tell_work, tell_hostile, tell_waiting, tell_branches, tell_damaged]


def show(page: Any, world: World, thread: ThreadId) -> int:
    """Open the report of *thread* with all that is folded; return its length in bytes."""
    made = render_report(view_report(world.store, thread, {"DEPLOY_PASSWORD": SECRET}))
    path = world.place / "report.html"
    path.write_text(made)
    page.goto(f"file://{path}")
    page.evaluate(_OPEN)
    return len(made.encode())


@pytest.mark.parametrize("tell", STORIES)
def test_a_report_loads_nothing_and_runs_nothing(
    page: Any, said: list[str], world: World, tell: Callable[[World], ThreadId]
) -> None:
    show(page, world, tell(world))
    # An image or a frame that was let in would be asked for by now.
    page.wait_for_load_state("networkidle")

    assert said == [f"request file://{world.place}/report.html"]
    for name, attributes in page.evaluate(_ELEMENTS):
        # The open folds are the test's own.
        own = {key.lower(): value for key, value in attributes.items() if key != "open"}
        assert list(find_foreign(name.lower(), own)) == []
    assert HOSTILE_SIGNS.search(page.evaluate("document.documentElement.textContent")) is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize("tell", STORIES)
def test_a_report_fits(
    page: Any, world: World, tell: Callable[[World], ThreadId], width: int, scheme: str
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    show(page, world, tell(world))

    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(_TOO_WIDE) == []
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(13, 17, 23)"}[scheme]


def test_the_policy_stops_what_would_get_in(page: Any, said: list[str], world: World) -> None:
    made = render_report(view_report(world.store, tell_work(world), {}))
    attack = "<script>alert(1)</script><style>p { color: red }</style><img src=x onerror=alert(2)>"
    path = world.place / "attacked.html"
    path.write_text(made.replace("</main>", f'{attack}<p style="color: red">x</p></main>'))
    page.goto(f"file://{path}")
    page.wait_for_load_state("networkidle")

    assert [each for each in said if each.startswith("dialog")] == []
    assert len([each for each in said if "Content Security Policy" in each]) >= 4


def test_its_links_lead_to_their_places(page: Any, world: World) -> None:
    show(page, world, tell_work(world))
    page.click("#steps a >> nth=3")
    assert page.evaluate("document.querySelector(':target h3').textContent") == (
        "3. reviewer taken back"
    )


def test_a_paragraph_has_the_direction_of_its_script(page: Any, world: World) -> None:
    show(page, world, world.start(workflow=world.put().workflow, prompt=RIGHT_TO_LEFT))

    assert reads_right_to_left(page.locator("h1"))
    assert reads_right_to_left(page.locator(".content p"))


def test_two_hundred_steps_make_a_report_that_opens(
    page: Any, said: list[str], world: World
) -> None:
    assert show(page, world, tell_long(world, 200)) < _MOST_BYTES
    assert page.evaluate("document.querySelectorAll('section.step').length") == 200
    assert len(said) == 1
