import io

import pytest
from cli.program import Uwf
from plan.stories import NO, Story
from refusing import refuses

from uwf_git.cli.plan.carry_out import Decision, ask_person, tell_failures
from uwf_git.cli.session.settings import Session
from uwf_git.plan.phases import fold_story


@pytest.mark.parametrize(
    ("typed", "decision"),
    [
        ("c\n\n", Decision(goes_on=True)),
        ("what\n\ncontinue\n 用 make \n", Decision(goes_on=True, hint="用 make")),
        ("s\n", Decision(goes_on=False)),
        ("stop\n", Decision(goes_on=False)),
    ],
)
def test_person_decides(
    session: Session, monkeypatch: pytest.MonkeyPatch, typed: str, decision: Decision
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))

    assert ask_person(session._replace(stdin_is_tty=True, stderr_is_tty=True)) == decision


@pytest.mark.parametrize(("stdin", "stderr"), [(False, True), (True, False)])
def test_nobody_is_asked_off_a_terminal(session: Session, *, stdin: bool, stderr: bool) -> None:
    assert ask_person(session._replace(stdin_is_tty=stdin, stderr_is_tty=stderr)) is None


def test_person_who_leaves_decides_nothing(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = session._replace(stdin_is_tty=True, stderr_is_tty=True)
    for typed in ("", "c\n"):
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        with pytest.raises(KeyboardInterrupt):
            ask_person(terminal)
    monkeypatch.setattr("sys.stdin", io.StringIO("c\n\udcff\n"))
    with refuses("not-text"):
        ask_person(terminal)


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
