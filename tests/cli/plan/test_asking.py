import io

import pytest
from cli.program import Uwf
from plan.stories import NO, Story
from refusing import refuses
from workflows.plan_agent import write_plan_agent

from uwf_git.cli.plan.run import ask_person, tell_failures
from uwf_git.plan.phases import fold_story


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("c\n\n", ""),
        ("what\n\ncontinue\n 用 make \n", "用 make"),
        ("s\n", None),
        ("stop\n", None),
    ],
)
def test_person_decides(monkeypatch: pytest.MonkeyPatch, typed: str, hint: str | None) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))

    assert ask_person() == hint


@pytest.mark.parametrize(("stdin", "stderr"), [(False, True), (True, False)])
def test_nobody_is_asked_off_a_terminal(uwf: Uwf, *, stdin: bool, stderr: bool) -> None:
    agent = write_plan_agent(uwf.place, "executor crash")
    assert uwf("plan", "run", "x", "--agent", agent, "--max-retries", "1").status == 3

    ran = uwf("plan", "resume", stdin_is_tty=stdin, stderr_is_tty=stderr)

    assert (ran.status, "Continue with" in ran.err) == (3, False)


def test_person_who_leaves_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for typed in ("", "c\n"):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        with pytest.raises(KeyboardInterrupt):
            ask_person()
    monkeypatch.setattr("sys.stdin", io.StringIO("c\n\udcff\n"))
    with refuses("not-text"):
        ask_person()


def test_failures_are_told_with_phase_and_plan(uwf: Uwf) -> None:
    tell_failures(fold_story(Story().step("planner").step("plan-verifier", NO).told))
    stuck = Story().planned().plan().crash("executor").crash("executor", "failed")
    tell_failures(fold_story(stuck.told))

    assert uwf.capsys.readouterr().err.splitlines() == [
        "the planning has failed:",
        "try 1: rejected: 缺少测试; x; write one",
        "the execution of docs/plans/001-b.md has failed:",
        "try 1: exit status 1",
        "try 2: exit status 1",
    ]
