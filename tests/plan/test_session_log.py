from collections.abc import Callable
from datetime import UTC, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan.stories import NO, PLANS, YES, Story

from uwf_git.plan.phases import add_entries, render_entries, write_session_log

DAY = "session-2026-11-23.md"


def whole_story() -> Story:
    """Return a story with each kind of transition."""
    story = Story("做一个网站\n## 00:00:00 forged").step("planner").step("plan-verifier", NO)
    story.planned().crash("executor").step("executor").crash("verifier").step("verifier", NO)
    story.crash("executor", "failed").add("retry", reason="use pip").plan()
    story.add("pause", "paused", paused_from="ready", reason="lunch").add("resume")
    story.add("wait", "waiting", role="executor", until_ms=9, reason="usage limit").add("resume")
    story.add("patch").step("executor", {"summary": "it\ncommit 0000000000"}).add("poke")
    return story.plan().add("end", "completed")


def test_entries(golden: Callable[[str, str], None]) -> None:
    days = render_entries(whole_story().told, zone=UTC)

    golden(f"plan/{DAY}", add_entries(b"", DAY, days[DAY]).decode())


def test_day_is_that_of_the_zone() -> None:
    (name,) = render_entries(Story().told, zone=timezone(timedelta(hours=10)))

    assert name == "session-2026-11-24.md"


@given(st.data())
def test_each_entry_is_there_once_whatever_was_lost(draws: st.DataObject) -> None:
    entries = render_entries(whole_story().told, zone=UTC)[DAY]
    content = b""
    seen = 0
    while seen < len(entries):
        # The engine is killed now and then, before the log of a transition, or while a line waits.
        seen = draws.draw(st.integers(seen + 1, len(entries)))
        content = add_entries(content, DAY, dict(list(entries.items())[:seen]))
        if draws.draw(st.booleans()):
            content += "A person writes here, 没有换行".encode()
    places = [content.find(f"\ncommit {commit}".encode()) for commit in entries]

    assert places == sorted(places)
    assert all(content.count(f"\ncommit {commit}\n".encode()) == 1 for commit in entries)
    assert add_entries(content, DAY, entries) == content


def test_log_of_somebody_stays_as_it_is(tmp_path: Path) -> None:
    log = tmp_path / "docs/memory" / DAY
    log.parent.mkdir(parents=True)
    log.write_bytes(b"\xef\xbb\xbfmine\r\n\xff")

    (written,) = write_session_log(str(tmp_path), Story().step("planner").told)

    assert written == str(log)
    assert log.read_bytes().startswith(b"\xef\xbb\xbfmine\r\n\xff\n\n## 14:32:07 planning\n")
    assert write_session_log(str(tmp_path), Story().step("planner").told) == []


def test_log_behind_a_link_is_left_alone(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (project / "docs").mkdir(parents=True)
    elsewhere.mkdir()
    (project / "docs/memory").symlink_to(elsewhere)
    (project / DAY).symlink_to(elsewhere / "x")

    assert write_session_log(str(project), Story().told) == []
    assert write_session_log(str(project), Story().told, memory_dir=".") == []
    assert list(elsewhere.iterdir()) == []


def test_rejection_that_used_up_the_tries() -> None:
    story = Story().planned().step("executor")
    story.add("step", "failed", role="verifier", agent="a", meta=NO)

    (entries,) = render_entries(story.told, zone=UTC).values()

    assert list(entries.values())[-1].splitlines()[1] == (
        "verifier (a): rejected: 缺少测试; x; write one; waiting for a person"
    )


@pytest.mark.parametrize("meta", [None, 1, {}, {"summary": 1}, {"summary": " "}, YES])
def test_report_without_words(meta: object) -> None:
    (entries,) = render_entries(Story().add("step", role="planner", meta=meta).told).values()

    assert list(entries.values())[1].splitlines()[1] == "planner: done"


def test_one_plan_is_no_plans() -> None:
    story = Story().step("plans", {"plans": PLANS["plans"][:1]}).plan().add("end", "completed")

    told = "".join(render_entries(story.told, zone=UTC)[DAY].values())

    assert "1 plan: 000-准备.md\n" in told
    assert "1 of 1 plan completed" in told
