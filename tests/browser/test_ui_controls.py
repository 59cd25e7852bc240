"""The controls of a thread in the page: they record what the commands record, and trust nothing."""

import re

from browser.test_ui_keyboard import find_faults
from browser.ui import Listener, Tab, end, expect, trust
from commands.world import DEMO, World, fails, replied, says
from web.stories import tell_waiting, tell_work

from uwf_git.commands.inspect.list import ListRequest, list_thread_rows
from uwf_git.commands.start import StartRequest
from uwf_git.model.names import ThreadId
from uwf_git.store.trust import untrust_agents


def failed(world: World, *agents: str) -> ThreadId:
    """Start a thread whose first agent failed."""
    thread = world.start(*agents, workflow=world.put().workflow)
    world.fail(thread, fails("exit status 7: no such module"))
    return thread


def test_retry_with_a_hint_goes_on_in_the_background(world: World, tab: Tab) -> None:
    agent = Listener(world)
    thread = failed(world, agent.command)
    tab.open(f"/t/{thread}")
    expect(tab.text("exit status 7: no such module").first).to_be_visible()
    tab.page.get_by_label("Why, or a hint").fill("pip install it first")
    tab.find("button", "Retry").click()
    expect(tab.find("heading", re.compile("writer at work"))).to_be_visible()
    tab.find("tab", "Prompt").click()
    expect(tab.find("tabpanel")).to_contain_text("pip install it first")
    agent.finish()
    expect(tab.find("heading", re.compile("checker at work"))).to_be_visible()
    expect(tab.find("tabpanel")).to_contain_text("Do it.")
    expect(tab.find("tabpanel")).not_to_contain_text("pip install it first")
    agent.finish()
    expect(tab.page.locator(".head .badge")).to_have_text("✓completed")
    assert tab.heard == []


def test_click_trusts_no_command(world: World, tab: Tab) -> None:
    ran = world.place / "ran"
    command = world.program(f"touch {ran}")
    workflow = world.put(f"{DEMO}defaultAgent: {command}\n").workflow
    thread = world.begin(StartRequest(workflow, "Do it."))
    # As if workflow and thread had been fetched.
    untrust_agents(world.store, command=command)
    tab.open(f"/t/{thread}")
    tab.find("button", "Go on").click()
    expect(tab.find("alert")).to_contain_text("not trusted")
    expect(tab.find("alert").locator("code").first).to_contain_text("uwf ")
    tab.find("button", "Dismiss").click()
    expect(tab.find("alert")).to_have_count(0)
    # A record that is made although it cannot go on tells both.
    tab.find("button", "Pause").click()
    # The page is drawn again when the pause is seen, and a click on what was there before is lost.
    expect(tab.page.locator("#told")).to_contain_text("Paused")
    expect(tab.page.locator(".head .badge")).to_contain_text("paused")
    tab.find("button", "Resume").click()
    expect(tab.page.locator("#told")).to_contain_text("Resumed")
    expect(tab.find("alert")).to_contain_text("not trusted")
    tab.open("/new/demo")
    expect(tab.page.get_by_label("writer")).to_contain_text("not trusted here")
    tab.page.get_by_label("Task").fill("Do it as well.")
    tab.find("button", "Start").click()
    expect(tab.find("alert")).to_contain_text("not trusted")
    assert not ran.exists()


def test_fork_from_a_step(world: World, tab: Tab) -> None:
    thread = tell_work(world)
    tab.open(f"/t/{thread}/s/2")
    expect(tab.page.locator(".of-step h2")).to_have_text("2. developer")
    tab.find("checkbox", "and go on").uncheck()
    tab.find("button", "Fork here").dblclick()
    expect(tab.page.locator(".head .badge")).to_have_text("·ready")
    expect(tab.page.locator(".timeline a[aria-current]")).to_contain_text("developer")
    forks = [row for row in list_thread_rows(world.store, ListRequest()) if row["thread"] != thread]
    assert [row["depth"] for row in forks] == [2]
    # Any event can be chosen, not steps alone.
    tab.open(f"/t/{thread}")
    tab.page.locator(".timeline a.event", has_text="Started").click()
    expect(tab.page.locator(".of-step h2")).to_have_text("Started")
    tab.find("button", "Fork here").click()
    expect(tab.page.locator(".facts").first).to_contain_text("0 steps")
    tab.open(f"/t/{forks[0]['thread']}")
    # What was before the fork is shown as the fork's: the controls act on what is shown.
    tab.page.locator(".timeline a.event", has_text="planner").click()
    expect(tab.page).to_have_url(re.compile(f"#/t/{forks[0]['thread']}/s/1$"))
    assert tab.heard == []


def test_poke_takes_a_step_back(world: World, tab: Tab) -> None:
    thread = world.start(workflow=world.put().workflow)
    world.step(thread, says({"text": "poor"}))
    tab.open(f"/t/{thread}")
    tab.find("checkbox", "and go on").uncheck()
    tab.page.get_by_label("Why, or a hint").fill("Write better.")
    tab.find("button", "Poke").click()
    expect(tab.page.locator(".timeline .back")).to_have_text("writer taken back")
    expect(tab.page.locator(".facts").first).to_contain_text("0 steps1 taken back")
    assert world.snapshot(thread).record.depth == 0
    tab.text("Change state, limits or agents").click()
    tab.page.get_by_label("Patch of the state").fill('["a"]')
    tab.find("button", "Patch").click()
    expect(tab.text("a patch is an object")).to_be_visible()


def test_page_offers_and_shows_what_is_there(world: World, tab: Tab) -> None:
    thread = tell_waiting(world)
    tab.open(f"/t/{thread}")
    notices = tab.page.locator(".notice")
    expect(notices.get_by_role("link", name="Answer")).to_be_visible()
    world.pause(thread, reason="hold")
    expect(notices.last).to_contain_text("paused: hold")
    expect(notices.first).to_contain_text("It can be answered once the thread is resumed.")
    expect(notices.get_by_role("link")).to_have_count(0)
    tab.open(f"/t/{thread}/s/99")
    expect(tab.find("region", "The chosen step")).to_have_text("This thread has no step 99 here.")
    assert tab.heard == []


def test_interrupt_needs_a_reason(world: World, tab: Tab) -> None:
    world.put()
    agent = Listener(world)
    driver = world.process("run", "demo", "-p", "Stop me", "--agent", agent.command)
    tab.open()
    tab.page.locator("a.row", has_text="Stop me").click()
    agent.say("at work")
    tab.find("button", "Interrupt").click()
    expect(tab.page.get_by_label("Why, or a hint")).to_be_focused()
    expect(tab.find("alert")).to_contain_text("needs a reason")
    tab.page.keyboard.type("Wrong file.")
    tab.find("button", "Interrupt").click()
    expect(tab.page.locator(".head .badge")).to_have_text("‖paused")
    expect(tab.text("Wrong file.").first).to_be_visible()
    end(driver)
    agent.close()


def test_new_thread_of_trusted_agents_only(world: World, tab: Tab) -> None:
    world.put()
    agent = Listener(world)
    trust(world, "uwf-mock script.yaml")
    tab.open("/new")
    tab.page.get_by_label("What should it do?").fill("Sort mail")
    tab.find("searchbox", "Search workflows").fill("until content")
    expect(tab.page.locator(".workflows li")).to_have_count(1)
    tab.find("link", re.compile("^demo")).click()
    expect(tab.page.locator(".picture svg")).to_be_visible()
    tab.find("button", "Start").click()
    expect(tab.page.get_by_label("Task")).to_be_focused()
    tab.page.keyboard.type("Write **this**")
    offered = tab.page.get_by_label("writer").locator("option").all_text_contents()
    assert agent.command in offered
    assert not [each for each in offered if each.startswith("sh ")]
    tab.find("button", "Start").click()
    # No agent was chosen.
    expect(tab.find("alert")).to_be_visible()
    expect(tab.page.locator("select[aria-invalid]")).to_have_count(2)
    tab.page.reload()
    expect(tab.page.get_by_label("Task")).to_have_value("Write **this**")
    tab.page.get_by_label("writer").select_option(label=agent.command)
    tab.page.get_by_label("checker").select_option(label="human")
    tab.find("button", "Start").click()
    expect(tab.find("heading", re.compile("writer at work"))).to_be_visible()
    agent.finish()
    expect(tab.text("waits for a person").first).to_be_visible()
    expect(tab.find("link", "Answer").first).to_be_visible()
    tab.open("/new")
    expect(tab.page.get_by_label("What should it do?")).to_have_value("Sort mail")


def test_state_limits_and_agents_are_changed(world: World, tab: Tab, axe: str) -> None:
    thread = world.begun()
    trust(world, "true")
    tab.open(f"/t/{thread}")
    tab.find("checkbox", "and go on").set_checked(False)
    tab.page.get_by_label("Why, or a hint").fill("It is too cold.")
    tab.text("Change state, limits or agents").click()
    tab.page.get_by_label("Patch of the state").fill("{")
    tab.find("button", "Patch").click()
    expect(tab.text("this is no JSON")).to_be_visible()
    assert find_faults(tab, axe) == []
    tab.page.get_by_label("Patch of the state").fill('{"tone": "warm"}')
    tab.find("button", "Patch").click()
    expect(tab.text("It is too cold.").first).to_be_visible()
    tab.page.get_by_label("Minutes of work").fill("4.1")
    tab.page.get_by_label("Agent of writer").select_option(label="true")
    tab.find("button", "Amend").click()
    expect(tab.page.locator("#told")).to_contain_text("Amended")
    present = world.snapshot(thread).get_present()
    assert (present.state, present.limits) == ({"tone": "warm"}, {"maxExecutionTime": 246_000})
    expect(tab.page.get_by_label("Minutes of work")).to_have_value("4.1")
    assert tab.heard == []


def test_list_is_filtered_and_sorted(world: World, tab: Tab) -> None:
    world.put()
    for number, dollars in enumerate((0.5, 20, 3)):
        thread = world.start(prompt=f"Task {number}")
        usage = {"costUsd": dollars}
        world.step(thread, lambda _turn: replied({"text": "a"}, usage=usage))  # noqa: B023 - called at once
    world.kill(world.start(prompt="Dropped"))
    tab.open()
    titles = tab.page.locator("a.row .task")
    expect(titles).to_have_text(["Task 2", "Task 1", "Task 0"])
    expect(tab.page.locator("a.row .spent").first).to_have_text("1.5 s · 3.00 USD")
    tab.page.get_by_label("Order").select_option(label="Cost")
    expect(titles).to_have_text(["Task 1", "Task 2", "Task 0"])
    tab.page.get_by_label("Cost", exact=True).select_option(label="1.00 USD or more")
    expect(titles).to_have_text(["Task 1", "Task 2"])
    tab.page.get_by_label("Changed within").select_option(label="Last day")
    expect(tab.text("No thread fits.")).to_be_visible()
    tab.open("/?search=dropped")
    tab.find("link", "all").click()
    expect(titles).to_have_text(["Dropped"])
    expect(tab.page.get_by_label("Search threads")).to_have_value("dropped")
    tab.open("/")
    expect(titles).to_have_count(3)
    tab.page.get_by_label("Status").select_option(label="killed")
    expect(titles).to_have_text(["Dropped"])
    assert tab.heard == []


def test_failed_threads_that_are_shown_are_retried(world: World, tab: Tab) -> None:
    world.put()
    agent = world.program("""echo '{"meta": {"text": "a", "ok": true}}'""")
    trust(world, agent)
    failed = [world.start(agent, prompt=f"Task {number}") for number in range(3)]
    for thread in failed:
        world.fail(thread)
    world.fail(world.start("gone", prompt="Other"))
    tab.open()
    expect(tab.find("button", "Retry 4 failed…")).to_be_visible()
    tab.page.get_by_label("Search threads").fill("Task")
    tab.click("Retry 3 failed…", "Retry")
    expect(tab.page.locator("#told")).to_contain_text("3 threads may try again")
    expect(tab.text("No thread fits.")).to_be_visible()
    assert {world.snapshot(thread).record.status for thread in failed} == {"completed"}
    # One that cannot go on is told by its name.
    untrust_agents(world.store, command="gone")
    tab.page.get_by_label("Search threads").fill("Other")
    tab.click("Retry 1 failed…", "Retry")
    expect(tab.find("alert")).to_contain_text("Other: ")


def test_a_press_is_a_click_though_the_page_is_drawn_meanwhile(world: World, tab: Tab) -> None:
    thread = world.begun()
    world.pause(thread)
    tab.open(f"/t/{thread}")
    tab.page.get_by_label("and go on").uncheck()
    tab.find("button", "Resume").click()
    expect(tab.find("button", "Pause")).to_be_visible()
    tab.find("button", "Kill…").hover()
    # Resume has gone on holding the focus, and goes now: what is beside it moves.
    tab.page.mouse.down()
    tab.page.wait_for_timeout(200)
    tab.page.mouse.up()
    expect(tab.find("button", "Kill it")).to_be_visible()
    expect(tab.find("button", "Resume")).to_have_count(0)
