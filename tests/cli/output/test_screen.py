from pathlib import Path

import uwf_git
from uwf_git.cli.output.screen import Painted, Screen, Styled, screen_of
from uwf_git.cli.session.settings import Session
from uwf_git.model.thread import STATUSES
from uwf_git.web.entries import badge


def test_each_status_has_a_mark_of_its_own_in_ascii_too() -> None:
    for screen in (Screen(), Screen(is_utf8=False)):
        marks = [screen.mark(status).text for status in (*STATUSES, "running", "damaged", "new")]
        assert len(set(marks)) == len(marks)
    assert all(Screen(is_utf8=False).mark(status).text.isascii() for status in STATUSES)


def test_a_split_has_one_mark_on_terminal_report_and_page() -> None:
    sign = Screen().mark("split").text
    page = Path(uwf_git.__file__).parent / "web/ui/assets/modules/format.js"
    assert sign in badge("split")
    assert f'split: ["now", "{sign}"]' in page.read_text(encoding="utf-8")


def test_colour_is_only_where_it_is_wanted() -> None:
    assert Screen(has_colour=True).paint("a", "red") == "\x1b[31ma\x1b[0m"
    assert Screen(has_colour=True).paint("", "red") == ""
    assert Screen().paint("a", "red") == "a"
    assert Screen().name_status("failed", ", diverged") == Styled("✗ failed, diverged", "red")
    assert isinstance(Painted("a"), str)


def test_times_are_utc_unless_a_person_is_at_the_terminal(session: Session) -> None:
    text = session._replace(output_format="text")
    there = text._replace(stdout_is_tty=True)
    now_ms = session.now_ms()

    assert screen_of(text).tell_when(now_ms) == "2025-10-09 08:53:20 UTC"
    assert screen_of(there).tell_when(now_ms) == "1 s"
    assert screen_of(there._replace(is_utc=True)).tell_when(now_ms) == "2025-10-09 08:53:20 UTC"
    assert screen_of(there).tell_when(None) is None
    assert screen_of(text).tell_moment(now_ms) == "2025-10-09 08:53:20 UTC"
