"""The page and a thread in which all foreign text attacks: it is shown, and nothing happens."""

import json

import pytest
from browser.ui import Tab, expect
from commands.world import World
from web.stories import ATTACK, SECRET, tell_hostile

from uwf_git.commands.inspect.story import StoryReader, Telling, make_mask
from uwf_git.model.names import ThreadId

_HOSTILE_SCHEMA = {
    "type": "object",
    "title": ATTACK,
    "properties": {
        ATTACK: {"type": "string", "description": ATTACK},
        "__proto__": {"enum": [ATTACK, "\u202egnp.exe"]},
        "constructor": {
            "type": "array",
            "items": {"type": "object", "properties": {"<b>": {"const": ATTACK}}},
        },
    },
}  # fmt: skip
_FOREIGN = (
    "script[src*='//'], img, iframe, object, embed, form[action], [onerror], [onload], [style], "
    "main style"
)


def list_commits(world: World, thread: ThreadId) -> list[str]:
    head = world.store.refs.find(f"refs/threads/{thread}")
    assert head is not None
    reader = StoryReader(world.store, Telling(make_mask({})))
    return [entry["commit"] for entry in reader.read(thread, head, through_forks=True)]


def show_all(tab: Tab, thread: ThreadId, commits: list[str]) -> None:
    """Open a thread, each of its entries, and all their tabs."""
    for commit in commits:
        tab.open(f"/t/{thread}/e/{commit[:12]}")
        tab.page.wait_for_selector(f".of-step [data-commit='{commit}']")
        for number in range(tab.page.locator("[role=tab]").count()):
            tab.page.locator("[role=tab]").nth(number).click()
            assert tab.page.locator(_FOREIGN).count() == 0


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the server know what to mask."""
    monkeypatch.setenv("DEPLOY_PASSWORD", SECRET)


@pytest.mark.usefixtures("secret")
def test_hostile_thread_is_only_read(world: World, tab: Tab) -> None:
    thread = tell_hostile(world)
    tab.open(f"/t/{thread}")
    tab.page.wait_for_selector(".timeline a")
    show_all(tab, thread, list_commits(world, thread))
    text = tab.page.evaluate("document.documentElement.textContent")
    assert SECRET not in text
    assert not any(0x202A <= ord(each) <= 0x202E or 0x2066 <= ord(each) <= 0x2069 for each in text)
    tab.open("/?show=all")
    tab.page.wait_for_selector("a.row")
    tab.open(f"/t/{thread}")
    assert tab.heard == []


def test_hostile_schema_is_a_form(world: World, tab: Tab) -> None:
    source = json.dumps({
        "name": "hostile", "description": ATTACK,
        "roles": {
            "judge": {
                "description": ATTACK, "systemPrompt": ATTACK, "outputSchema": _HOSTILE_SCHEMA,
            },
        },
        "moderator": {"graph": [
            {"from": "$START", "transitions": [{"to": "judge"}]},
            {"from": "judge", "transitions": [{"to": "$END"}]},
        ]},
    })  # fmt: skip
    thread = world.start("human", workflow=world.put(source).workflow, prompt=ATTACK)
    world.step(thread)
    tab.open(f"/t/{thread}/answer")
    tab.page.get_by_label(ATTACK[:20]).first.fill("typed")
    tab.find("button", "Add constructor").click()
    tab.find("button", "Write JSON instead").click()
    assert json.loads(tab.find("textbox", "Answer as JSON").input_value())[ATTACK] == "typed"
    assert tab.page.locator(_FOREIGN).count() == 0
    assert tab.heard == []


def test_other_markup_is_stopped_by_the_policy(world: World, tab: Tab) -> None:
    tab.open()
    with pytest.raises(Exception, match="TrustedHTML"):
        tab.page.evaluate("document.body.innerHTML = '<img src=x onerror=alert(1)>'")
    tab.page.evaluate(
        "import('/modules/dom.js').then(dom => dom.patch("
        "document.getElementById('told'), dom.h('p', {style: 'color: red'}, 'x')))"
    )
    expect(tab.page.locator("#told p")).to_have_text("x")
    colour = tab.page.evaluate("getComputedStyle(document.querySelector('#told p')).color")
    assert colour != "rgb(255, 0, 0)"
