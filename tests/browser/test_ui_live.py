"""The page while threads are driven elsewhere: progress, logs, control, a new server, many tabs."""

import os
import re
import signal
from pathlib import Path
from typing import Any

from browser.ui import Listener, Tab, end, expect, serve
from commands.world import DEMO, World, says

from uwf_git.commands.control.answer import pause_thread
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.local_files import log_path

_SHOW = """is => {
    Object.defineProperty(document, 'visibilityState', {value: is, configurable: true});
    document.dispatchEvent(new Event('visibilitychange'));
}"""


def start_run(world: World, agent: str, *, task: str = "Watch me") -> Any:
    """Drive a new thread in another process, as `uwf run` on a terminal."""
    return world.process("run", "demo", "-p", task, "--agent", agent)


def open_thread(tab: Tab, task: str) -> ThreadId:
    """Follow the link of the list that names *task*."""
    tab.page.locator("a.row", has_text=task).click()
    expect(tab.find("heading", task)).to_be_visible()
    return ThreadId(tab.page.evaluate("location.hash.split('/')[2]"))


def test_run_elsewhere_is_seen_from_its_start_to_its_end(world: World, tab: Tab) -> None:
    world.put()
    agent = Listener(world)
    tab.open()
    expect(tab.text("No threads yet.")).to_be_visible()
    driver = start_run(world, agent.command)
    expect(tab.find("region", re.compile("^Running"))).to_contain_text("Watch me")
    open_thread(tab, "Watch me")
    expect(tab.find("heading", re.compile("writer at work"))).to_be_visible()
    agent.say("reading the task")
    expect(tab.find("log")).to_contain_text("reading the task")
    agent.say("writing \u202eit\x1b[31m")
    expect(tab.find("log")).to_contain_text(r"writing \u202eit\x1b[31m")
    agent.finish()
    expect(tab.find("heading", re.compile("checker at work"))).to_be_visible()
    agent.say("checking it")
    expect(tab.find("log")).to_contain_text("checking it")
    tab.find("tab", "Prompt").click()
    expect(tab.find("tabpanel")).to_contain_text("Check.")
    agent.finish()
    expect(tab.page.locator(".head .badge")).to_have_text("✓completed")
    assert end(driver) == 0
    expect(tab.page.locator(".timeline a[aria-current]")).to_contain_text("checker")
    assert tab.heard == []


def test_thread_that_needs_a_person_is_announced(world: World, tab: Tab) -> None:
    thread = world.begun(DEMO, "nobody", "checker=human")
    told = tab.find("status")
    tab.open(f"/t/{thread}")
    expect(tab.page).to_have_title("ready · Do it. · uwf")
    world.step(thread, says({"text": "a text"}))
    expect(tab.page.locator("a.event").last).to_contain_text("writer")
    expect(told).to_have_text("")
    world.step(thread)
    expect(told).to_have_text("Do it.: waiting")
    expect(tab.page).to_have_title("waiting · Do it. · uwf")
    pause_thread(world.store, world.caller, thread)
    expect(told).to_contain_text("Do it.: paused")


def test_running_agent_is_paused_and_killed(world: World, tab: Tab) -> None:
    world.put()
    agent = Listener(world)
    driver = start_run(world, agent.command)
    tab.open()
    thread = open_thread(tab, "Watch me")
    agent.say("at work")
    expect(tab.find("log")).to_contain_text("at work")
    tab.page.get_by_label("Why, or a hint").fill("Let me look.")
    tab.find("button", "Pause").click()
    expect(tab.page.locator("#told")).to_contain_text("Paused")
    agent.finish()
    expect(tab.page.locator(".head .badge")).to_have_text("‖paused")
    expect(tab.text("Let me look.").first).to_be_visible()
    end(driver)
    tab.find("button", "Resume").click()
    expect(tab.find("heading", re.compile("checker at work"))).to_be_visible()
    agent.say("checking")
    tab.click("Kill…", "Cancel")
    expect(tab.find("button", "Kill…")).to_be_focused()
    tab.click("Kill…", "Kill it")
    expect(tab.page.locator(".head .badge")).to_have_text("✗killed")
    assert world.snapshot(thread).record.status == "killed"
    agent.close()
    assert tab.heard == []


def test_server_that_starts_anew_wants_its_new_key(world: World, tab: Tab, browser: Any) -> None:
    tab.open(f"/t/{world.begun()}")
    tab.page.get_by_label("Why, or a hint").fill("Typed before")
    port = tab.server.port
    tab.server.stop()
    expect(tab.text("Not connected")).to_be_visible()
    expect(tab.find("alert").first).to_contain_text(f"uwf ui --port {port}")
    with serve(world, port) as again:
        expect(tab.find("heading", "This page has no valid key")).to_be_visible(timeout=30_000)
        other = tab.page.context.new_page()
        other.goto(again.address)
        expect(other.get_by_text("Do it.")).to_be_visible()
        # The first tab goes on by itself, with what was typed.
        expect(tab.page.get_by_label("Why, or a hint")).to_have_value("Typed before")
        other.close()


def test_stream_that_has_gone_silent_is_not_live(world: World, tab: Tab) -> None:
    tab.page.clock.install()
    tab.open(f"/t/{world.begun()}")
    expect(tab.page.get_by_label("Why, or a hint")).to_be_visible()
    expect(tab.text("Live")).to_be_visible()
    tab.server.process.send_signal(signal.SIGSTOP)
    try:
        # Words that were sent before may still come, and the wait begins anew with each.
        for _ in range(100):
            tab.page.clock.fast_forward(60_000)
            if tab.text("Not connected").is_visible():
                break
        expect(tab.text("Not connected")).to_be_visible()
    finally:
        tab.server.process.send_signal(signal.SIGCONT)
    expect(tab.text("Live")).to_be_visible()


def test_log_is_told_to_be_cut_and_asked_for_while_it_is_shown(world: World, tab: Tab) -> None:
    tab.page.clock.install()
    agent = Listener(world)
    thread = world.begun(DEMO, agent.command)
    log = Path(log_path(world.store, thread))
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("line\n" * 600)
    driver = world.process("thread", "run", thread)
    agent.say("at work")
    tab.open(f"/t/{thread}")
    expect(tab.text("Earlier lines are left out.")).to_be_visible()
    # It is left while it is read once more.
    held: list[Any] = []
    tab.page.route(f"**/api/threads/{thread}", lambda each: held.append(each))  # noqa: PLW0108 (see `Tab.listen`)
    with tab.page.expect_request(f"**/api/threads/{thread}"):
        tab.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    tab.open("/")
    expect(tab.page.locator("a.row")).to_be_visible()
    with tab.page.expect_response(f"**/api/threads/{thread}"):
        held[0].continue_()
    asked: list[str] = []
    tab.page.on("request", lambda each: asked.append(each.url))
    for _ in range(3):
        tab.page.wait_for_timeout(100)
        # What was on its way may still have come, but nothing follows it.
        asked.clear()
        tab.page.clock.fast_forward(60_000)
    tab.page.wait_for_timeout(300)
    agent.finish()
    driver.kill()
    driver.communicate()
    assert [each for each in asked if "/log" in each] == []


def test_store_that_has_gone_is_not_live(world: World, tab: Tab) -> None:
    world.begun()
    tab.open()
    expect(tab.text("Live")).to_be_visible()
    os.rename(world.store.path, f"{world.store.path}.moved")
    expect(tab.text("Store not readable")).to_be_visible()
    expect(tab.find("alert")).to_contain_text("does not exist")
    os.rename(f"{world.store.path}.moved", world.store.path)
    expect(tab.text("Live")).to_be_visible()
    expect(tab.find("alert")).to_have_count(0)


def test_what_is_no_key_takes_the_place_of_none(world: World, tab: Tab) -> None:
    world.begun()
    tab.open("/")
    expect(tab.page.get_by_text("Do it.")).to_be_visible()

    # As any other page can, by a link or a new window.
    tab.page.goto(f"{tab.server.origin}#{'A' * 43}")
    expect(tab.page).to_have_url(f"{tab.server.origin}#/")
    tab.page.goto("about:blank")
    with tab.page.expect_response("**/api/about"):
        tab.page.goto(f"{tab.server.origin}#{'B' * 43}")

    tab.page.reload()
    expect(tab.page.get_by_text("Do it.")).to_be_visible()


def test_one_stream_for_all_tabs(world: World, tab: Tab) -> None:
    streams: list[str] = []
    context = tab.page.context
    context.on(
        "request", lambda each: streams.append(each.url) if "/api/stream" in each.url else None
    )
    tab.open()
    expect(tab.text("No threads yet.")).to_be_visible()
    tabs = [context.new_page() for _ in range(7)]
    for each in tabs:
        each.goto(tab.server.origin)
        expect(each.get_by_text("No threads yet.")).to_be_visible()
    world.start(workflow=world.put().workflow, prompt="In all of them")
    for each in [tab.page, *tabs]:
        expect(each.locator("a.row")).to_contain_text("In all of them")
    assert len(streams) == 1


def test_hidden_tab_holds_no_stream_and_is_true_on_return(world: World, tab: Tab) -> None:
    tab.open()
    expect(tab.text("No threads yet.")).to_be_visible()
    with tab.page.expect_event("requestfailed", lambda each: "/api/stream" in each.url):
        tab.page.evaluate(_SHOW, "hidden")
    world.start(workflow=world.put().workflow, prompt="Meanwhile")
    tab.page.evaluate(_SHOW, "visible")
    expect(tab.page.locator("a.row")).to_contain_text("Meanwhile")
