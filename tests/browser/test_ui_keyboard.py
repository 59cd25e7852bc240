"""The page by keyboard alone: the focus is seen, and no update takes it."""

import json
import re
import signal
from typing import Any

import pytest
from browser.test_report import tell_damaged
from browser.ui import Listener, Tab, ask, end, expect
from commands.world import World, says
from web.stories import tell_branches, tell_hostile, tell_work

from uwf_git.model.names import ThreadId

_SEEN = """() => {
    const at = document.activeElement;
    const style = getComputedStyle(at);
    const box = at.getBoundingClientRect();
    return at !== document.body
        && style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2
        && box.width > 0 && box.bottom > 0 && box.top < innerHeight;
}"""
_MOST_PRESSES = 80


def press_until(tab: Tab, name: str, *, key: str = "Tab") -> None:
    """Go on by *key* until what has the focus begins with *name*; the focus is seen all the way."""
    for _ in range(_MOST_PRESSES):
        tab.page.keyboard.press(key)
        assert tab.page.evaluate(_SEEN), tab.focused()
        if name in tab.focused():
            return
    raise AssertionError(f"{name} was not reached; at {tab.focused()}")


def waiting(world: World) -> ThreadId:
    return ask(world, "printer=human", prompt="Tour")


def test_tour_from_list_to_recorded_answer(world: World, tab: Tab) -> None:
    thread = waiting(world)
    tab.open()
    expect(tab.page.locator("a.row")).to_have_count(1)
    tab.page.keyboard.press("Tab")
    assert tab.focused() == "a Skip to the content"
    tab.page.keyboard.press("Enter")
    press_until(tab, "Tour")
    tab.page.keyboard.press("Enter")
    expect(tab.find("heading", "Tour")).to_be_visible()
    press_until(tab, "Content")
    tab.page.keyboard.press("ArrowRight")
    assert tab.focused() == "button Check"
    expect(tab.find("tabpanel")).to_contain_text("git -C")
    press_until(tab, "writer", key="Shift+Tab")
    tab.page.keyboard.press("ArrowDown")
    assert "judge" in tab.focused()
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator(".timeline a[aria-current]")).to_contain_text("judge")
    press_until(tab, "Answer", key="Shift+Tab")
    tab.page.keyboard.press("Enter")
    expect(tab.find("heading", "Answer as judge")).to_be_visible()
    # A group of radio buttons is one stop.
    for _ in range(_MOST_PRESSES):
        tab.page.keyboard.press("Tab")
        if tab.page.evaluate("document.activeElement.type === 'radio'"):
            break
    tab.page.keyboard.press("Space")
    tab.page.keyboard.press("Tab")
    tab.page.keyboard.type("By keyboard.")
    # Sent too early: the focus goes to what is missing.
    tab.page.keyboard.press("Control+Enter")
    expect(tab.page.locator("#problems")).to_be_visible()
    expect(tab.page.locator("fieldset:focus-within").first).to_contain_text("then")
    tab.page.keyboard.press("Space")
    tab.page.keyboard.press("Control+Enter")
    expect(tab.find("heading", re.compile("2. judge"))).to_be_visible()
    assert world.snapshot(thread).record.depth == 2


def test_step_that_is_chosen_in_a_narrow_window_has_the_focus(world: World, tab: Tab) -> None:
    thread = world.stepped(*[says({"text": "a text"}), says({"ok": False})] * 6)
    tab.page.set_viewport_size({"width": 320, "height": 256})
    tab.open(f"/t/{thread}")
    tab.page.locator("a.event").nth(5).focus()
    tab.page.keyboard.press("Enter")
    expect(tab.find("region", "The chosen step")).to_be_focused()
    expect(tab.find("region", "The chosen step")).to_be_in_viewport()
    press_until(tab, "Content")


def test_update_keeps_focus_and_what_is_typed(world: World, tab: Tab) -> None:
    thread = waiting(world)
    tab.open()
    tab.page.get_by_label("Search threads").fill("To")
    tab.page.locator("a.row").focus()
    tab.page.keyboard.press("ArrowDown")
    world.start(workflow=world.put().workflow, prompt="Toward")
    expect(tab.page.locator("a.row")).to_have_count(2)
    assert "Tour" in tab.focused()
    tab.page.get_by_label("Search threads").focus()
    world.start(workflow="demo", prompt="Together")
    expect(tab.page.locator("a.row")).to_have_count(3)
    assert "Search threads" in tab.focused()

    tab.open(f"/t/{thread}")
    why = tab.page.get_by_label("Why, or a hint")
    why.fill("half a ")
    why.press("End")
    world.pause(thread)
    expect(tab.page.locator(".head .badge")).to_have_text("‖paused")
    tab.page.keyboard.type("word")
    expect(why).to_have_value("half a word")
    # The control that is used up stays until it is left.
    tab.find("button", "Resume").focus()
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator(".head .badge")).to_have_text("?waiting")
    assert tab.focused() == "button Resume"
    tab.page.keyboard.press("Tab")
    expect(tab.find("button", "Resume")).to_have_count(0)
    assert not tab.focused().startswith("body")


def test_dialog_holds_the_focus_and_gives_it_back(world: World, tab: Tab) -> None:
    thread = waiting(world)
    tab.open(f"/t/{thread}")
    tab.find("button", "Kill…").focus()
    tab.page.keyboard.press("Enter")
    expect(tab.find("button", "Cancel")).to_be_focused()
    tab.page.keyboard.press("Escape")
    expect(tab.find("dialog")).to_have_count(0)
    assert tab.focused() == "button Kill…"
    assert world.snapshot(thread).record.status == "waiting"


# The page's looks: accessible, light and dark, from wide to 400 px, and at twice the size.

_AXE = """async () => {
    const levels = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    const found = await axe.run(document, {runOnly: levels});
    return found.violations.map(each => `${each.id}: ${each.nodes.map(
        node => node.html + node.any.map(any => any.message)).join(' | ')}`);
}"""
# Wider than the window: only what scrolls by itself may be.
_TOO_WIDE = """() => [...document.querySelectorAll('body *')].filter(each => {
    const box = each.getBoundingClientRect();
    return box.right > innerWidth + 1 && box.width > 0
        && !each.closest('.wide, .picture, .log, .unseen, .skip, svg');
}).map(each => each.outerHTML.slice(0, 100))"""


class Places:
    """Addresses of each view, with real threads."""

    def __init__(self, world: World) -> None:
        work = tell_work(world)
        hostile = tell_hostile(world)
        split = tell_branches(world)
        damaged = tell_damaged(world)
        asked = ask(world)
        world.put()
        self.agent = Listener(world)
        ready = world.start(workflow="demo")
        self.driver = world.process("run", "demo", "-p", "At work", "--agent", self.agent.command)
        self.agent.say("reading")
        self.addresses = {
            "threads": ("/", "a.row"),
            "all threads": ("/?show=all", "a.row"),
            "no thread": ("/?search=zzzz", ".empty"),
            "thread": (f"/t/{work}", ".of-step .facts"),
            "step": (f"/t/{work}/s/2", ".of-step .facts"),
            "hostile": (f"/t/{hostile}/s/1", ".of-step .facts"),
            "branches": (f"/t/{split}", ".of-step .facts"),
            "ready": (f"/t/{ready}", "button.act"),
            "damaged": (f"/t/{damaged}", ".notice.bad"),
            "waiting": (f"/t/{asked}", ".of-step .facts"),
            "missing": ("/t/01J0000000000000000000ZZZZ", "[role=alert]"),
            "answer": (f"/t/{asked}/answer", "form"),
            "new": ("/new", "a.row"),
            "start": ("/new/asked", "form"),
        }

    def show(self, tab: Tab, name: str) -> None:
        """Show the view *name*."""
        if name == "running":
            tab.open("/")
            tab.page.locator("a.row", has_text="At work").click()
            expect(tab.find("log")).to_contain_text("reading")
            return
        where, sign = self.addresses[name]
        tab.open("/new")
        tab.page.wait_for_selector("#draft-title")
        tab.open(where)
        tab.page.locator(sign).first.wait_for()
        expect(tab.text("Loading…")).to_have_count(0)
        if name == "answer":
            open_all(tab)

    def close(self) -> None:
        """End the drive."""
        self.driver.send_signal(signal.SIGINT)
        end(self.driver)
        self.agent.close()


def find_faults(tab: Tab, axe: str) -> list[str]:
    """Return what axe-core finds in the view that is shown."""
    # The policy of the page allows no script tag.
    tab.page.evaluate(axe)
    problems: list[str] = tab.page.evaluate(_AXE)
    return problems


def open_all(tab: Tab) -> None:
    """Open the parts of a form, and have it complain."""
    tab.click("Add findings", "Add topics")
    tab.page.get_by_label("Send it").check()
    tab.find("button", "Record the answer").click()
    expect(tab.page.locator("#problems")).to_be_visible()


def check_views(tab: Tab, places: Places, check: Any) -> dict[str, Any]:
    """Return what *check* finds in each view, if it is anything."""
    found = {}
    for name in [*places.addresses, "running"]:
        places.show(tab, name)
        problems = check()
        if problems:
            found[name] = problems
    return found


@pytest.fixture
def places(world: World, tab: Tab) -> Any:
    made = Places(world)
    yield made
    made.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(tab: Tab, places: Places, axe: str, scheme: str) -> None:
    tab.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    tab.open("/")
    found = check_views(tab, places, lambda: find_faults(tab, axe))
    assert found == {}, json.dumps(found, indent=1)


@pytest.mark.parametrize(("width", "scale"), [(800, 1), (400, 1), (640, 2)])
def test_nothing_is_wider_than_the_window(
    tab: Tab, places: Places, browser: Any, width: int, scale: int
) -> None:
    # A window of 1280 px at 200 % is one of 640 px with twice the dots.
    context = browser.new_context(
        viewport={"width": width, "height": 800}, device_scale_factor=scale
    )
    wide = Tab(context.new_page(), tab.server)
    wide.open("/")

    def check() -> list[str]:
        if wide.page.evaluate("document.documentElement.scrollWidth") > width:
            return [f"scrolls {wide.page.evaluate('document.documentElement.scrollWidth')}"]
        problems: list[str] = wide.page.evaluate(_TOO_WIDE)
        return problems

    assert check_views(wide, places, check) == {}
    context.close()


def test_what_is_chosen_is_seen_in_forced_colours(world: World, tab: Tab) -> None:
    tab.page.emulate_media(forced_colors="active")
    tab.open(f"/t/{world.stepped()}")
    tab.page.locator("[role=tab]").first.wait_for()

    borders = tab.page.evaluate(
        "[...document.querySelectorAll('[role=tab], #bar nav a')].map(each => ["
        "each.matches('[aria-selected=true], [aria-current]'),"
        "getComputedStyle(each).borderBottomWidth])"
    )

    assert len(borders) > 3
    assert all(border == ("3px" if is_chosen else "0px") for is_chosen, border in borders)


def test_reduced_motion_moves_nothing(tab: Tab, places: Places) -> None:
    places.show(tab, "running")
    assert tab.page.evaluate("document.getAnimations().length") == 0
    tab.page.emulate_media(reduced_motion="no-preference")
    assert tab.page.evaluate("document.getAnimations().length") > 0
