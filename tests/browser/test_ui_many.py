"""The page of a store with 1,000 threads: a hundred rows at a time, and search on the server."""

import re

import pytest
from browser.ui import RIGHT_TO_LEFT, Tab, expect, reads_right_to_left
from commands.flows import finish, split_checks
from commands.step.test_record_turn import CHECKS
from commands.turns import script
from commands.world import World, replied, says
from web.stories import tell_long, tell_work

from uwf_git.commands.step.step_thread import list_leaves

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
    expect(tab.page.locator(".timeline a[aria-current]")).to_be_in_viewport()
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
    # On paper nothing can be scrolled.
    tab.page.emulate_media(media="print")
    assert tab.page.locator("ol.timeline").evaluate("at => at.scrollHeight === at.clientHeight")


# A thread in the page: what its steps say, how they differ, how to check them, its branches.


def test_step_is_told_compared_and_checked(world: World, tab: Tab) -> None:
    thread = tell_work(world)
    tab.open(f"/t/{thread}")
    steps = tab.page.locator(".timeline a.event:not(.minor)")
    expect(steps).to_have_text(
        [
            "1planner12 s",
            "✗ developer: failed attempt800 ms",
            "2developer3 min",
            "3reviewer taken back31 s",
            "3reviewer33 s",
            "4developer95 s",
            "5reviewer1.5 s",
        ]
    )
    steps.nth(5).click()
    expect(tab.page).to_have_url(re.compile(f"#/t/{thread}/s/4$"))
    expect(tab.find("heading", "4. developer")).to_be_visible()
    expect(tab.find("group", "Meta")).to_contain_text("Escaped all filters")
    expect(tab.find("tabpanel")).to_contain_text("Nothing else calls it.")
    tab.find("tab", "Check").click()
    commit = tab.page.locator("[data-commit]").get_attribute("data-commit")
    expect(tab.find("tabpanel")).to_contain_text(f"git -C {world.store.path} show {commit}")
    tab.find("tab", "Diff").click()
    expect(tab.page.locator(".diff .added").first).to_contain_text("+15 -4")
    tab.find("link", "the visit before").click()
    expect(tab.find("heading", "2. developer")).to_be_visible()
    # The address names the step, so going back shows the other one again.
    tab.page.go_back()
    expect(tab.find("heading", "4. developer")).to_be_visible()
    expect(tab.find("tab", "Diff")).to_have_attribute("aria-selected", "true")
    assert tab.heard == []


def test_text_has_the_direction_of_its_script(world: World, tab: Tab) -> None:
    thread = world.start(workflow=world.put().workflow, prompt=RIGHT_TO_LEFT)
    tab.open()
    expect(tab.page.locator("a.row")).to_have_count(1)
    assert reads_right_to_left(tab.page.locator("a.row .task"))
    tab.open(f"/t/{thread}")
    expect(tab.find("heading", level=1)).to_have_text(RIGHT_TO_LEFT)
    assert reads_right_to_left(tab.find("heading", level=1))
    assert reads_right_to_left(tab.page.locator(".of-about .content p"))


def test_a_box_of_the_picture_leads_to_the_steps_of_its_role(world: World, tab: Tab) -> None:
    thread = tell_work(world)
    tab.open(f"/t/{thread}")
    box = tab.page.locator(".picture text.name", has_text="developer")
    for step in ("s/4", "s/2", "e/[0-9a-f]+", "s/4"):
        box.click()
        expect(tab.page).to_have_url(re.compile(f"#/t/{thread}/{step}$"))
    tab.page.locator(".picture text.end").first.click()
    expect(tab.page).to_have_url(re.compile("/s/4$"))
    assert tab.heard == []


def test_branches_lead_to_their_threads_and_back(world: World, tab: Tab) -> None:
    thread = world.begun(CHECKS)
    play = script(coder="x = 1")
    world.step(thread, play)
    world.step(thread, play)
    tab.open(f"/t/{thread}")
    branches = tab.find("region", re.compile("^Branches"))
    # They are no threads before they begin.
    expect(branches.locator("li")).to_have_count(2)
    expect(branches.locator("a")).to_have_count(0)
    world.step(thread, script(reviewer="fine", builder="built"))
    expect(branches.locator("a").first).to_be_visible()
    branches.locator("a").first.click()
    expect(tab.find("link", re.compile("^branch of"))).to_be_visible()
    tab.find("link", re.compile("^branch of")).click()
    expect(tab.page).to_have_url(re.compile(f"#/t/{thread}$"))
    assert tab.heard == []


def test_branches_of_branches_are_live_under_a_short_address(world: World, tab: Tab) -> None:
    inner = "{type: parallel, nodes: [{type: agent, agentId: one}, {type: agent, agentId: two}]}"
    nodes = f"[{inner}, {{type: agent, agentId: three}}]"
    at = split_checks(world, f"name: nest\nroot: {{type: parallel, nodes: {nodes}}}\n")
    world.step(at.children[0])
    leaf, *_ = list_leaves(world.store, world.snapshot(at.children[0]))
    tab.open(f"/t/{at.thread[:20]}")
    rows = tab.page.locator(".timeline a.event")
    expect(rows.last).to_be_visible()

    world.step(leaf, says({}))

    expect(rows.filter(has_text="1one")).to_be_visible()


def test_branches_that_cannot_be_joined_are_told_with_what_to_type(world: World, tab: Tab) -> None:
    at = split_checks(world)
    for number, child in enumerate(at.children):
        world.step(child, lambda _turn: replied({"same": number}))  # noqa: B023 - called at once
        finish(world, child)

    tab.open(f"/t/{at.thread}")

    notice = tab.page.locator(".notice").filter(has_text="Held up: ")
    expect(notice).to_contain_text("disagree about same")
    expect(notice.locator("code").first).to_have_text(
        f"uwf --repo {world.store.path} thread patch {at.thread} '{{\"same\": 0}}'"
    )
    assert tab.heard == []


def test_narrow_page_has_the_chosen_step_below_the_timeline_whose_numbers_stay_in_a_line(
    world: World, tab: Tab
) -> None:
    thread = world.begun()
    for ok in [*[False] * 50, True]:
        world.step(thread, says({"text": "a text"}))
        world.step(thread, says({"ok": ok}))
    tab.page.set_viewport_size({"width": 400, "height": 800})
    tab.open(f"/t/{thread}")
    parts = [tab.page.locator(f".of-{each}") for each in ("picture", "timeline", "step", "about")]
    expect(parts[2].locator(".facts")).to_be_visible()
    tops = [each.bounding_box()["y"] for each in parts]
    assert tops == sorted(tops)
    rows = tab.page.locator(".timeline a.event", has_text=re.compile("^(9|102)[wc]"))
    assert (rows.count(), len({row.bounding_box()["height"] for row in rows.all()})) == (2, 1)


def test_a_wide_split_is_one_box_and_whole_at_full_size(world: World, tab: Tab) -> None:
    nodes = "\n".join(f"    - {{type: agent, agentId: left, id: left-{n}}}" for n in range(13))
    thread = world.begun(f"name: many\nroles: {{}}\nroot:\n  type: parallel\n  nodes:\n{nodes}\n")
    world.step(thread, says({}))
    tab.open(f"/t/{thread}")
    picture = tab.page.locator(".picture svg")
    expect(picture).to_contain_text("13 \N{MULTIPLICATION SIGN} left")
    narrow = picture.bounding_box()["width"]
    tab.find("button", "Full size").click()
    expect(picture).to_contain_text("left-7")
    expect(picture).not_to_contain_text("13 \N{MULTIPLICATION SIGN} left")
    assert picture.bounding_box()["width"] > 2 * narrow
    tab.find("button", "Full size").click()
    expect(picture).to_contain_text("13 \N{MULTIPLICATION SIGN} left")
    picture.locator("text.name", has_text="left").click()
    expect(picture).to_contain_text("left-7")
    assert tab.heard == []
