"""Reports: what they show, that they show it safely, and that they are the same twice."""

import re
from collections.abc import Callable

from commands.world import World
from web.allowed import Parsed, harmless
from web.stories import BIDI, KEY, SECRET, tell_hostile, tell_long, tell_many

from uwf_git.commands.inspect.graph import view_report
from uwf_git.model.names import ThreadId
from uwf_git.web.entries import REPORT_SHEET
from uwf_git.web.report import render_report


def report(world: World, thread: ThreadId) -> str:
    return render_report(view_report(world.store, thread, {"DEPLOY_PASSWORD": SECRET}))


def test_reports_are_as_written_down(world: World, golden: Callable[[str, str], None]) -> None:
    for name, thread in tell_many(world).items():
        made = report(world, thread)
        seen = Parsed(made)
        assert seen.foreign == []
        assert len(seen.ids) == len(set(seen.ids))
        assert set(seen.targets) <= set(seen.ids)
        assert f"<style>{REPORT_SHEET}</style>" in made
        shown = re.sub(r"(?s)<style>.*?</style>|<svg.*?</svg>", "", made)
        golden(f"web/{name}.html", re.sub(r"(.{2,20}\n)\1+", r"\1", shown))
    # Where the terminal cannot show more, texts are written as references, which a style has not.
    assert REPORT_SHEET.isascii()


def test_a_hostile_thread_does_nothing(world: World) -> None:
    made = report(world, tell_hostile(world))

    harmless(made)
    assert KEY not in made
    assert SECRET not in made
    assert BIDI not in made


def test_a_long_thread_makes_a_report_that_can_be_sent(world: World) -> None:
    made = report(world, tell_long(world, 50))

    assert len(made.encode()) < 50 * 25_000
    assert Parsed(made).text.count("The first 8 KB of 59 KB") == 50
