"""Reports: what they show, that they show it safely, and that they are the same twice."""

import re
import shutil
from pathlib import Path

from commands.step.test_record_turn import CHECKS
from commands.turns import drive, script
from commands.world import World
from store.small_packs import lose
from web.allowed import Parsed, harmless
from web.stories import BIDI, KEY, SECRET, tell_hostile, tell_long, tell_waiting, tell_work

from uwf_git.commands.inspect.graph import view_report
from uwf_git.model.names import ThreadId
from uwf_git.store.store import open_store
from uwf_git.web.entries import REPORT_SHEET, render_command
from uwf_git.web.report import render_report


def report(world: World, thread: ThreadId) -> str:
    return render_report(view_report(world.store, thread, {"DEPLOY_PASSWORD": SECRET}))


def test_a_report_shows_all_that_happened(world: World) -> None:
    made = report(world, tell_work(world))
    seen = Parsed(made)

    assert seen.foreign == []
    for shown in (
        "✓ completed",
        "6 steps (1 taken back), 1 failed attempt",
        "developer: attempt 1 failed: exited: exit status 7: no such module ldap3",
        "pip install ldap3 first",
        "Let me look at it first.",
        "+15 -4",
        "What differs from the visit before",
        "The first 8 KB of 63 KB; all of it: git show",
        "after 1 failed attempt",
        "State changed by hand",
        "uwf verify --signatures 01J",
        "json-cas get ",
        "unsigned",
    ):
        assert shown in seen.text
    assert len(seen.ids) == len(set(seen.ids))
    assert set(seen.targets) <= set(seen.ids)
    assert made.count("<style>") == 1
    assert REPORT_SHEET in made
    # Where the terminal cannot show more, texts are written as references, which a style has not.
    assert REPORT_SHEET.isascii()


def test_a_hostile_thread_does_nothing(world: World) -> None:
    made = report(world, tell_hostile(world))

    harmless(made)
    assert KEY not in made
    assert SECRET not in made
    assert BIDI not in made


def test_the_same_store_gives_the_same_bytes(world: World, tmp_path: Path) -> None:
    thread = tell_work(world)
    made = report(world, thread)
    world.reopen()
    assert report(world, thread) == made

    copy = tmp_path / "elsewhere" / "copy.git"
    shutil.copytree(world.store.path, copy)
    world.store = open_store(str(copy))
    assert report(world, thread) == made


def test_a_long_thread_makes_a_report_that_can_be_sent(world: World) -> None:
    made = report(world, tell_long(world, 50))

    assert len(made.encode()) < 50 * 25_000
    assert Parsed(made).text.count("The first 8 KB of 59 KB") == 50


def test_branches_stand_between_split_and_join(world: World) -> None:
    thread = world.begun(CHECKS)
    answers = {"coder": "x = 1", "reviewer": "fine", "builder": "built", "tester": "passed"}
    drive(world, thread, script(**answers, closer="bye"))

    text = Parsed(report(world, thread)).text

    order = ["Split: checks", "Branch 0: reviewer", "fine", "Branch 1: testing", "2. checks"]
    places = [text.rindex(each) if each == "2. checks" else text.index(each) for each in order]
    assert places == sorted(places)
    assert "branch 1: 2" in text


def test_a_question_is_told(world: World) -> None:
    seen = Parsed(report(world, tell_waiting(world)))

    assert "? waiting" in seen.text
    assert "for a person, who plays reviewer" in seen.text
    assert "answered by" in seen.text


def test_a_thread_whose_tip_is_lost_gives_a_report_too(world: World) -> None:
    thread = tell_work(world)
    lose(world.store, world.snapshot(thread).commit.oid)

    seen = Parsed(report(world, thread))

    assert "This thread is damaged." in seen.text
    assert f"uwf verify {thread}" in seen.text


def test_the_policy_names_the_style_alone(world: World) -> None:
    made = report(world, world.begun())
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', made)

    assert found is not None
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/=]{44}'; base-uri 'none'; form-action 'none'",
        found[1],
    )


def test_a_long_command_is_folded() -> None:
    assert render_command("uwf-claude -m opus") == "<code>uwf-claude -m opus</code>"
    told = render_command("/bin/sh -c 'echo 1\necho <b>'")
    assert told.startswith("<details><summary><code>sh</code></summary>\n<pre>/bin/sh")
    assert "echo &lt;b&gt;" in told
