import os
from collections.abc import Callable
from datetime import UTC, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan.stories import BEGIN_MS, NO, PLANS, YES, Story

from uwf_git.plan.phases import (
    IDLE,
    STATE_FILE,
    PlanState,
    add_entries,
    build_state_document,
    fold_story,
    list_failures,
    list_plan_rows,
    list_plans,
    read_state,
    render_entries,
    write_session_log,
    write_state,
)
from uwf_git.plan.project_files import PlanFile

WHERE = {"thread": "T", "repo": "/s.git", "address": "127.0.0.1", "port": 9527}
FIRST, SECOND = list_plans(PLANS)


def state(story: Story) -> PlanState:
    return fold_story(story.told)


def summary(story: Story) -> tuple[str, int | None, int, str]:
    """Return the phase, the number of the plan, the failed tries and the error."""
    now = state(story)
    return now.phase, None if now.current is None else now.current.number, now.tries, now.error


REJECTED = "缺少测试; x; write one"

WORDS = {
    "begun": (Story(), ("planning", None, 0, "")),
    "planned": (Story().step("planner"), ("planning", None, 0, "")),
    "rejected": (
        Story().step("planner").step("plan-verifier", NO),
        ("planning", None, 1, REJECTED),
    ),
    "plans follow": (
        Story().step("planner").step("plan-verifier", YES),
        ("executing", None, 0, ""),
    ),
    "first plan": (Story().planned(), ("executing", 0, 0, "")),
    "work done": (Story().planned().step("executor"), ("executing", 0, 0, "")),
    "second plan": (Story().planned().plan(), ("executing", 1, 0, "")),
    "crashed": (Story().planned().plan().crash("executor"), ("executing", 1, 1, "exit status 1")),
    "a verifier that breaks is no try": (
        Story().planned().step("executor").crash("verifier"),
        ("executing", 0, 0, "exit status 1"),
    ),
    "an interruption is no try": (
        Story().planned().crash("executor", counts=False),
        ("executing", 0, 0, "exit status 1"),
    ),
    "used up": (
        Story().planned().crash("executor").crash("executor").crash("executor", "failed"),
        ("waiting_human", 0, 3, "exit status 1"),
    ),
    "continued": (
        Story().planned().crash("executor", "failed").add("retry", reason="use pip"),
        ("executing", 0, 0, "exit status 1"),
    ),
    "asked": (
        Story().planned().add("wait", "waiting", role="executor"),
        ("waiting_human", 0, 0, ""),
    ),
    "limit": (
        Story().add("wait", "waiting", role="planner", until_ms=9),
        ("planning", None, 0, ""),
    ),
    "paused": (Story().add("pause", "paused", paused_from="ready"), ("planning", None, 0, "")),
    "paused after a failure": (
        Story().crash("planner", "failed").add("pause", "paused", paused_from="failed"),
        ("waiting_human", None, 1, "exit status 1"),
    ),
    "stopped": (
        Story().planned().add("kill", "killed", reason="enough"),
        ("failed", 0, 0, "enough"),
    ),
    "completed": (
        # Of a workflow of somebody else's, which leaves a plan out.
        Story().planned().plan().add("end", "completed"),
        ("completed", None, 0, ""),
    ),
    "taken back": (Story().planned().plan().add("poke"), ("executing", 0, 0, "")),
    "a plan is not done because an earlier one was": (
        Story().planned().plan().crash("executor").crash("executor", "failed"),
        ("waiting_human", 1, 2, "exit status 1"),
    ),
}


@pytest.mark.parametrize(("story", "expected"), WORDS.values(), ids=WORDS.keys())
def test_words_of_the_seed(story: Story, expected: tuple[str, int | None, int, str]) -> None:
    assert summary(story) == expected


def test_limit_beyond_the_calendar_ends_with_the_calendar(tmp_path: Path) -> None:
    # An agent that counts in microseconds.
    assert write_state(str(tmp_path), PlanState("waiting", until_ms=10**16 - 1), {})
    assert read_state(str(tmp_path))["until"] == "9999-12-30T23:59:59+00:00"


def test_commit_beyond_the_calendar_is_logged() -> None:
    started = Story().told[0]._replace(time_ms=10**19)
    days = render_entries([started], zone=timezone(timedelta(hours=14)))
    assert list(days) == ["session-9999-12-31.md"]


def test_each_failed_try_says_why() -> None:
    stuck = Story().planned().crash("executor").step("executor").step("verifier", NO)
    assert list_failures(state(stuck)) == ["try 1: exit status 1", f"try 2: rejected: {REJECTED}"]

    broken = Story().planned().step("executor").crash("verifier", "failed")
    assert list_failures(state(broken)) == ["then: exit status 1"]
    assert list_failures(state(Story().planned())) == []


def test_state_document() -> None:
    story = Story("做一个网站").planned().crash("executor")
    story.add("pause", "paused", paused_from="ready", max_retries=5)

    assert build_state_document(state(story), WHERE) == {
        "phase": "executing",
        "currentPlan": "000-准备",
        "retryCount": 1,
        "maxRetries": 5,
        "task": "做一个网站",
        "error": "exit status 1",
        **WHERE,
        "updated": "2026-11-23T14:32:12+00:00",
        "paused": True,
    }
    assert BEGIN_MS // 1000 == 1_795_444_327


EXTRA = PlanFile("docs/plans/002-c.md", 2, "c")


@pytest.mark.parametrize(
    ("story", "words"),
    [
        (Story(), {2: "pending"}),
        (Story().planned(), {0: "executing", 1: "pending", 2: "pending"}),
        (Story().planned().plan(), {0: "completed", 1: "executing", 2: "pending"}),
        (
            Story().planned().plan().crash("executor", "failed"),
            {0: "completed", 1: "failed", 2: "pending"},
        ),
        (Story().planned().add("kill", "killed"), {0: "failed", 1: "pending", 2: "pending"}),
        (
            Story().planned().add("wait", "waiting", role="verifier"),
            {0: "executing", 1: "pending", 2: "pending"},
        ),
        (
            Story().planned().plan().plan().add("end", "completed"),
            {0: "completed", 1: "completed", 2: "pending"},
        ),
    ],
)
def test_words_of_plans(story: Story, words: dict[int, str]) -> None:
    rows = list_plan_rows(state(story), [EXTRA, *([FIRST] if 0 in words else [])])

    assert {row["number"]: row["status"] for row in rows} == words
    assert [row["number"] for row in rows if row.get("missing")] == ([1] if 1 in words else [])
    assert [row["number"] for row in rows if row.get("tracked") is False] == [2]


DAY = "session-2026-11-23.md"


def whole_story() -> Story:
    """Return a story with each kind of transition."""
    story = Story("做一个网站\n## 00:00:00 forged").step("planner").step("plan-verifier", NO)
    story.planned().crash("executor").step("executor").crash("verifier").step("verifier", NO)
    story.crash("executor", "failed").add("retry", reason="use pip").plan()
    story.add("pause", "paused", paused_from="ready", reason="lunch").add("resume")
    story.add("wait", "waiting", role="executor", until_ms=9, reason="usage limit").add("resume")
    story.add("patch").step("executor", {"summary": "it\ncommit 0000000000"}).add("poke")
    return story.step("executor", {"summary": " "}).plan().add("end", "completed")


def test_entries(golden: Callable[[str, str], None]) -> None:
    days = render_entries(whole_story().told, zone=UTC)

    golden(f"plan/{DAY}", add_entries(b"", DAY, days[DAY]).decode())


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

    write_session_log(str(tmp_path), Story().step("planner").told)

    first = log.stat()
    assert log.read_bytes().startswith(b"\xef\xbb\xbfmine\r\n\xff\n\n## 14:32:07 planning\n")
    write_session_log(str(tmp_path), Story().step("planner").told)
    assert log.stat().st_ino == first.st_ino


def test_log_behind_a_link_is_left_alone(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    (project / "docs").mkdir(parents=True)
    elsewhere.mkdir()
    (project / "docs/memory").symlink_to(elsewhere)
    (project / DAY).symlink_to(elsewhere / "x")

    write_session_log(str(project), Story().told)
    write_session_log(str(project), Story().told, memory_dir=".")
    assert list(elsewhere.iterdir()) == []


def test_state_is_written_only_if_it_changed(tmp_path: Path) -> None:
    state = fold_story(Story("做一个网站").planned().told)

    assert write_state(str(tmp_path), state, WHERE)
    first = (tmp_path / STATE_FILE).stat()
    assert not write_state(str(tmp_path), state, WHERE)
    assert (tmp_path / STATE_FILE).stat().st_ino == first.st_ino
    assert read_state(str(tmp_path))["currentPlan"] == "000-准备"
    assert write_state(str(tmp_path), IDLE, {})
    assert read_state(str(tmp_path))["phase"] == "idle"
    assert sorted(os.listdir(tmp_path / ".state")) == [".gitignore", "workflow.state.json"]


def test_state_is_no_file_of_the_project(tmp_path: Path, git: Callable[..., str]) -> None:
    """Only folders of ours ignore themselves."""
    git("init", "--quiet", cwd=tmp_path)
    (tmp_path / ".state").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/x.md").touch()

    write_state(str(tmp_path), IDLE, {})
    write_state(str(tmp_path), IDLE, {}, state_file="docs/state.json")
    write_state(str(tmp_path), IDLE, {}, state_file="new/state.json")
    write_state(str(tmp_path), IDLE, {}, state_file="state.json")

    status = git("status", "--short", "--untracked-files=all", cwd=tmp_path).splitlines()
    assert status == ["?? docs/state.json", "?? docs/x.md", "?? state.json"]


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_file_that_is_none(tmp_path: Path, content: bytes) -> None:
    assert read_state(str(tmp_path)) == {}
    (tmp_path / ".state").mkdir()
    (tmp_path / STATE_FILE).write_bytes(content)

    assert read_state(str(tmp_path)) == {}


def test_pipe_in_its_place_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / ".state").mkdir()
    os.mkfifo(tmp_path / STATE_FILE)

    assert read_state(str(tmp_path)) == {}
    assert write_state(str(tmp_path), IDLE, {})
    assert read_state(str(tmp_path))["phase"] == "idle"


def test_state_outside_is_left_alone(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / ".state").symlink_to(tmp_path)

    assert not write_state(str(project), IDLE, WHERE)
    assert not write_state(str(project), IDLE, WHERE, state_file="../x.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["project"]


@pytest.mark.parametrize("target", [None, "/dev/zero"])
def test_file_without_end_is_not_read_to_it(tmp_path: Path, target: str | None) -> None:
    (tmp_path / ".state").mkdir()
    if target is None:
        content = b'{"thread": "T"}'.ljust(16 * 1024**2)
        (tmp_path / STATE_FILE).write_bytes(content)
        assert read_state(str(tmp_path)) == {"thread": "T"}
        (tmp_path / STATE_FILE).write_bytes(content + b" ")
    else:
        (tmp_path / STATE_FILE).symlink_to(target)

    assert read_state(str(tmp_path)) == {}
