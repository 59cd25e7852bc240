"""The page by keyboard alone: the focus is seen, and no update takes it."""

import re

from browser.ui import ASKED, Tab, expect
from commands.world import World, says

from uwf_git.commands.control.answer import pause_thread
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
AGENTS = ("nobody", "judge=human", "printer=human")


def press_until(tab: Tab, name: str, *, key: str = "Tab") -> None:
    """Go on by *key* until what has the focus begins with *name*; the focus is seen all the way."""
    for _ in range(_MOST_PRESSES):
        tab.page.keyboard.press(key)
        assert tab.page.evaluate(_SEEN), tab.focused()
        if name in tab.focused():
            return
    raise AssertionError(f"{name} was not reached; at {tab.focused()}")


def waiting(world: World) -> ThreadId:
    thread = world.start(*AGENTS, workflow=world.put(ASKED).workflow, prompt="Tour")
    world.step(thread, says({"text": "a text"}))
    world.step(thread)
    return thread


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
    pause_thread(world.store, world.caller, thread)
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
