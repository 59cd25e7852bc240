"""A person's answer in the page: a form of all kinds, problems in place, nothing typed is lost."""

import re
from typing import Any

import pytest
from browser.ui import ASKED, Tab, ask, expect
from commands.world import World

from uwf_git.commands.control.answer import PersonAnswer
from uwf_git.model.names import ThreadId


@pytest.fixture
def thread(world: World) -> ThreadId:
    return ask(world)


def answer_elsewhere(world: World, thread: ThreadId, *, good: bool) -> None:
    meta = {"good": good, "why": "elsewhere", "version": 7, "then": {"do": "stop"}}
    world.answer(thread, PersonAnswer(meta))


def choose(tab: Tab, group: str, option: str) -> None:
    tab.page.get_by_role("radiogroup", name=re.compile(f"^{group}")).get_by_label(
        option, exact=True
    ).check()


def fill_needed(tab: Tab) -> None:
    choose(tab, "good", "Yes")
    tab.page.get_by_label("why").fill("It reads well.")
    choose(tab, "then", "Stop")


def record(tab: Tab) -> None:
    tab.find("checkbox", "and go on").set_checked(False)
    tab.find("button", "Record the answer").click()


def read_meta(world: World, thread: ThreadId) -> Any:
    return world.snapshot(thread).get_head_node().payload["meta"]


def test_form_has_a_field_of_each_kind(world: World, thread: ThreadId, tab: Tab) -> None:
    tab.open(f"/t/{thread}")
    tab.find("link", "Answer").first.click()
    expect(tab.find("heading", "Answer as judge")).to_be_visible()
    choose(tab, "good", "No")
    tab.fill(why="Too long.\nMuch too long.", weight="2.5", pages="12")
    choose(tab, "grade", "three")
    tab.find("button", "Add topics").click()
    tab.page.get_by_label("topics 1", exact=True).fill("style")
    tab.find("button", "Add topics").click()
    tab.page.get_by_label("topics 2", exact=True).fill("dropped")
    tab.find("button", "Remove topics 2").click()
    tab.find("button", "Add findings").click()
    tab.fill(file="a.txt", line="3")
    choose(tab, "then", "Send it")
    tab.page.get_by_label("to", exact=True).fill("Ada")
    tab.page.get_by_label("extra").fill('{"any": [1, null]}')
    tab.fill(Text="What **I** think.", Note="Read it twice.\n\nOn paper.")
    record(tab)

    expect(tab.page.locator(".of-step h2")).to_have_text("2. judge")
    assert read_meta(world, thread) == {
        "good": False, "why": "Too long.\nMuch too long.", "grade": "three", "weight": 2.5,
        "pages": 12, "version": 7, "topics": ["style"],
        "findings": [{"file": "a.txt", "at": {"line": 3}}],
        "then": {"do": "send", "to": "Ada"}, "extra": {"any": [1, None]},
    }  # fmt: skip
    assert world.snapshot(thread).body == "Read it twice.\n\nOn paper."
    assert tab.heard == []


def test_problems_stand_at_their_fields(world: World, thread: ThreadId, tab: Tab) -> None:
    tab.open(f"/t/{thread}/answer")
    tab.fill(pages="many", weight="-1")
    record(tab)
    expect(tab.page.get_by_label("pages")).to_have_attribute("aria-invalid", "true")
    expect(tab.page.locator("#problems li")).to_have_text(
        [
            "good: choose yes or no",
            re.compile("why: this is needed"),
            re.compile("weight: -1 is less than"),
            "pages: type a whole number",
            "then: choose one",
        ]
    )
    fill_needed(tab)
    tab.fill(pages="3", weight="1", why="no")
    record(tab)

    expect(tab.page.get_by_label("why")).to_be_focused()
    described = tab.page.get_by_label("why").get_attribute("aria-describedby")
    told = tab.page.evaluate(
        "ids => ids.split(' ').map(id => document.getElementById(id).textContent).join()", described
    )
    assert re.search("too short|shorter|minLength|at least", told)
    assert world.snapshot(thread).record.depth == 1
    assert [each for each in tab.heard if "422" not in each] == []


def test_question_is_shown_with_task_state_and_newest_steps(
    world: World, thread: ThreadId, tab: Tab
) -> None:
    world.patch(thread, {"tone": "friendly"})
    answer_elsewhere(world, thread, good=False)
    world.step(thread)
    tab.open(f"/t/{thread}/answer")
    parts = tab.page.locator(".asked details")
    expect(parts).to_have_count(4)
    summaries = parts.locator("summary").all_text_contents()
    assert [each.split(" ")[0] for each in summaries] == ["Task", "State", "2.", "1."]
    assert parts.evaluate_all("all => all.map(each => each.open)") == [True, False, True, False]
    expect(parts.nth(2)).to_contain_text("elsewhere")
    parts.nth(3).locator("summary").click()
    expect(parts.nth(3)).to_contain_text("a text")


def test_title_is_the_label_of_a_field(world: World, tab: Tab) -> None:
    titled = "why: {type: string, title: Your reason, minLength: 3}"
    thread = ask(world, source=ASKED.replace("why: {type: string, minLength: 3}", titled))
    tab.open(f"/t/{thread}/answer")
    expect(tab.page.get_by_label("Your reason")).to_be_visible()
    record(tab)
    expect(tab.page.locator("#problems li").nth(1)).to_contain_text("Your reason: this is needed")


def test_what_was_typed_survives_a_reload(world: World, thread: ThreadId, tab: Tab) -> None:
    tab.open(f"/t/{thread}/answer")
    fill_needed(tab)
    tab.find("button", "Add topics").click()
    tab.page.get_by_label("topics 1", exact=True).fill("style")
    tab.page.get_by_label("Note").fill("Asked Ada.")
    tab.page.reload()
    expect(tab.page.get_by_label("why")).to_have_value("It reads well.")
    expect(tab.page.get_by_label("Note")).to_have_value("Asked Ada.")
    expect(tab.page.get_by_label("topics 1", exact=True)).to_have_value("style")
    record(tab)
    expect(tab.page.locator(".of-step h2")).to_have_text("2. judge")
    assert read_meta(world, thread)["topics"] == ["style"]
    # It was recorded, so it is kept no longer.
    assert (
        tab.page.evaluate("Object.keys(localStorage).filter(key => key.includes('answer')).length")
        == 0
    )


def test_thread_that_moved_on_keeps_what_was_typed(
    world: World, thread: ThreadId, tab: Tab
) -> None:
    tab.open(f"/t/{thread}/answer")
    fill_needed(tab)
    tab.page.get_by_label("Note").fill("Asked Ada.")
    # The same role is asked again.
    answer_elsewhere(world, thread, good=False)
    world.step(thread)
    expect(tab.find("alert")).to_contain_text("The thread moved on while you typed")
    expect(tab.page.get_by_label("why")).to_have_value("It reads well.")
    # Nobody is asked now.
    answer_elsewhere(world, thread, good=True)
    expect(tab.find("heading", "No answer is needed now")).to_be_visible()
    expect(tab.page.locator("pre")).to_contain_text("It reads well.")
    expect(tab.page.locator("pre")).to_contain_text("Asked Ada.")
    tab.find("button", "Forget it").click()
    expect(tab.page.locator("pre")).to_have_count(0)


def test_lost_race_records_nothing_and_keeps_what_was_typed(
    world: World, thread: ThreadId, tab: Tab
) -> None:
    # The page is not told of the other answer before it sends its own.
    tab.page.route("**/api/stream*", lambda route: route.abort())
    tab.open(f"/t/{thread}/answer")
    fill_needed(tab)
    answer_elsewhere(world, thread, good=False)
    world.step(thread)
    record(tab)
    expect(tab.page.locator(".notice.wait")).to_contain_text(
        re.compile("^Nothing was recorded. The thread moved on while you typed")
    )
    expect(tab.page.get_by_label("why")).to_have_value("It reads well.")
    assert world.snapshot(thread).record.depth == 2
    tab.find("button", "Record the answer").click()
    expect(tab.page.locator(".of-step h2")).to_have_text("3. judge")


def test_json_and_fields_change_into_each_other(world: World, thread: ThreadId, tab: Tab) -> None:
    tab.open(f"/t/{thread}/answer")
    fill_needed(tab)
    tab.find("button", "Write JSON instead").click()
    box = tab.find("textbox", "Answer as JSON")
    expect(box).to_have_value(re.compile('"why": "It reads well."'))
    box.fill('{"good": true, "why": "fine", "version": 7, "then": {"do": "send", "to": "Bob"}}')
    tab.find("button", "Fill in fields").click()
    expect(tab.page.get_by_label("to", exact=True)).to_have_value("Bob")
    tab.find("button", "Write JSON instead").click()
    box.fill("{")
    record(tab)
    expect(tab.find("alert")).to_contain_text("this is no JSON that can be sent")
    box.fill('{"pages": 12345678901234567890}')
    record(tab)
    expect(tab.find("alert")).to_contain_text("cannot hold 12345678901234567890 exactly")
    box.fill('{"good": 1}')
    record(tab)
    expect(tab.find("alert")).to_contain_text("good: ")
