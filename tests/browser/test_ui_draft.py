"""A draft of a workflow in the page: wished, shown with its picture, put after a yes."""

from browser.test_ui_keyboard import find_faults
from browser.ui import Tab, expect, trust
from commands.draft.test_judge import GOOD
from commands.world import World

_WRITER = """\
printf -- '---\\nname: letter\\nwhy: as simple as can be\\nquestions: []\\n---\\n'
cat '{file}'
"""


def test_draft_is_put_after_a_yes(world: World, tab: Tab, axe: str) -> None:
    file = world.place / "drafted.yaml"
    file.write_text(GOOD)
    command = world.program(_WRITER.format(file=file), name="writer")
    trust(world, command)
    tab.open("/new")
    tab.find("button", "Draft it").click()
    expect(tab.page.get_by_label("What should it do?")).to_be_focused()
    tab.page.keyboard.type("A letter to Ada")
    tab.page.get_by_label("Written by").select_option(label=command)
    tab.find("button", "Draft it").click()

    expect(tab.find("heading", "Draft: letter")).to_be_visible()
    expect(tab.page.locator(".head .badge")).to_have_text("✓completed")
    expect(tab.page.locator(".picture svg")).to_be_visible()
    expect(tab.find("group", "The workflow file")).to_contain_text("name: letter")
    for scheme in ("light", "dark"):
        tab.page.emulate_media(color_scheme=scheme)
        assert find_faults(tab, axe) == []
    tab.click("Register it…", "Cancel", "Register it…")
    assert find_faults(tab, axe) == []
    tab.find("button", "Register it").click()
    tab.find("link", "Start a thread of it").click()
    expect(tab.page.get_by_label("Task")).to_be_visible()
    assert tab.heard == []
