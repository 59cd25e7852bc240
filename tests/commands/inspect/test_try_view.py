"""What is told of a try: by `thread show`, `read`, `graph` and `context`."""

from commands.verified import BAD, PLANS, take
from commands.world import World, read_thread

from uwf_git.cli.output.screen import Screen
from uwf_git.cli.thread.show import _text
from uwf_git.commands.inspect.context import get_context, render_prompt
from uwf_git.commands.inspect.graph import picture_thread, view_report
from uwf_git.commands.inspect.show import show_thread
from uwf_git.web.report import render_report


def test_show_tells_the_try(world: World) -> None:
    thread = world.begun(PLANS)
    take(world, thread, {}, BAD, {})
    view = show_thread(world.store, thread)["try"]
    assert view == {"number": 2, "of": 3, "node": "executor", "at": "0.1/0", "turn": "verifier"}
    take(world, thread, BAD)
    shown = show_thread(world.store, thread)
    assert shown["try"]["number"] == 3
    assert "3 of 3 at executor; it is the turn of executor" in _text(shown, Screen())
    take(world, thread, {}, BAD)
    shown = show_thread(world.store, thread)
    assert "all 3 at executor are used up" in _text(shown, Screen())
    assert "error     verifier rejected it: no tests" in _text(shown, Screen())
    assert shown["error"]["kind"] == "rejected"


def test_read_and_the_picture_tell_the_try(world: World) -> None:
    thread = world.begun(PLANS)
    take(world, thread, {}, BAD, {})
    facts = [line for line in read_thread(world.store, thread).splitlines() if " try " in line]
    assert [line.partition("try ")[2].partition(" ·")[0] for line in facts] == [
        "1",
        "1 rejected",
        "2",
    ]
    report = render_report(view_report(world.store, thread, {}))
    assert [report.count(f"<li>try {each}</li>") for each in ("1", "1 rejected", "2")] == [1, 1, 1]
    subject = picture_thread(world.store, thread)
    assert subject.thread is not None
    assert subject.thread.marks["0/0"].badge == "▶ try 2 of 3, verifier · ✓ 2"


def test_the_next_try_is_told_its_plan_and_why_the_last_one_was_rejected(world: World) -> None:
    thread = world.begun(PLANS)
    take(world, thread, {}, BAD)
    prompt = render_prompt(get_context(world.store, thread))
    assert "Carry out 000.md." in prompt
    assert "This is try 2 of 3. verifier looked at the last one and rejected it." in prompt
    assert "- no tests\n- no words" in prompt
    assert "<suggestion>\nwrite both" in prompt


def test_a_verifier_is_told_what_it_judges(world: World) -> None:
    thread = world.begun(PLANS)
    take(world, thread, {"completed": True})
    context = get_context(world.store, thread)
    assert context["role"]["name"] == "verifier"
    assert context["input"] is None
    prompt = render_prompt(context)
    assert "You judge the work of executor, which is the newest step above (try 1 of 3)" in prompt
    assert "<work>\nCarry out 000.md." in prompt


def test_a_verdict_without_issues_is_told_whole(world: World) -> None:
    thread = world.begun(PLANS)
    take(world, thread, {}, {"verified": False, "why": "it burns"})
    assert '"why": "it burns"' in render_prompt(get_context(world.store, thread))
