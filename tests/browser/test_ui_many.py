"""The page of a store with 1,000 threads: a hundred rows at a time, and search on the server."""

import re

import pytest
from browser.ui import Tab, expect
from commands.world import World
from web.stories import tell_long

_MANY = 1000


@pytest.fixture
def many(world: World) -> World:
    workflow = world.put().workflow
    for number in range(_MANY):
        world.start(workflow=workflow, prompt=f"Task n{number:04}")
    return world


def test_hundred_rows_and_a_search(many: World, tab: Tab) -> None:
    tab.open()
    rows = tab.page.locator("a.row")
    expect(rows).to_have_count(100)
    expect(rows.first).to_contain_text("Task n0999")
    tab.find("link", "Next 100").click()
    expect(rows.first).to_contain_text("Task n0899")
    expect(rows).to_have_count(100)
    tab.page.go_back()
    expect(rows.first).to_contain_text("Task n0999")
    tab.page.get_by_label("Search threads").fill("n0777")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Task n0777")
    expect(tab.text("1 thread")).to_be_visible()
    rows.click()
    expect(tab.find("heading", "Task n0777")).to_be_visible()
    tab.page.go_back()
    expect(tab.page.get_by_label("Search threads")).to_have_value("n0777")
    tab.find("link", "Threads").click()
    expect(tab.page.get_by_label("Search threads")).to_have_value("")
    expect(rows).to_have_count(100)


def test_eight_tabs_work(many: World, tab: Tab) -> None:
    tab.open()
    pages = [tab.page, *(tab.page.context.new_page() for _ in range(7))]
    for number, page in enumerate(pages):
        if number:
            page.goto(tab.server.origin)
        expect(page.locator("a.row")).to_have_count(100)
    many.start(prompt="The newest")
    for page in pages:
        expect(page.locator("a.row").first).to_contain_text("The newest")
        page.locator("a.row").nth(5).click()
        expect(page.get_by_role("heading", name=re.compile("Task n"))).to_be_visible()
    assert tab.heard == []


def test_long_thread_shows_its_newest_events(world: World, tab: Tab) -> None:
    thread = tell_long(world, 230)
    tab.open(f"/t/{thread}")
    events = tab.page.locator(".timeline a.event")
    expect(events).to_have_count(200)
    expect(tab.page.locator(".timeline a[aria-current]")).to_contain_text("230")
    row = tab.page.locator(".timeline a[aria-current]")
    expect(row).to_be_in_viewport()
    # Narrow, the page itself would scroll: it stays at its head.
    tab.page.set_viewport_size({"width": 400, "height": 800})
    tab.page.reload()
    expect(events).to_have_count(200)
    expect(tab.find("heading", level=1)).to_be_in_viewport()
    tab.page.set_viewport_size({"width": 1280, "height": 800})
    tab.open(f"/t/{thread}/s/3")
    expect(tab.find("heading", re.compile(r"^3\. "))).to_be_visible()
    expect(tab.page.locator(".timeline a[aria-current] .depth")).to_have_text("3")
    tab.open(f"/t/{thread}")
    tab.find("button", "Show 31 earlier events").click()
    expect(events).to_have_count(231)
