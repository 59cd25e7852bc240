"""`uwf plan run` and `uwf plan resume`, with an agent that is a program."""

import io
import json
from pathlib import Path

import pytest
from cli.program import Uwf
from workflows.plan_agent import write_plan_agent

from uwf_git.cli.plan import carry_out, resume, run
from uwf_git.commands.plan import begin

MODULES = (begin, carry_out, resume, run)
STUCK = ("executor crash", "executor lie", "verifier reject")


def test_task_is_planned_and_carried_out(uwf: Uwf) -> None:
    agent = write_plan_agent(uwf.place)

    ran = uwf("plan", "run", "做一个网站", "--agent", agent)

    assert ran.status == 0, ran.err
    assert json.loads(ran.out)["phase"] == "completed"
    assert json.loads((uwf.place / ".state/workflow.state.json").read_text())["port"] is None
    (log,) = (uwf.place / "docs/memory").iterdir()
    assert "2 of 2 plans completed" in log.read_text()
    assert (uwf.place / ".plugins/workflow/hooks/stop_hook").is_file()
    refused = uwf("plan", "run", "more", "--agent", agent)
    assert (refused.status, "plan files already" in refused.err) == (1, True)
    assert uwf("plan", "resume").status == 1


def test_used_up_tries_wait_and_resume_decides(uwf: Uwf) -> None:
    agent = write_plan_agent(uwf.place, *STUCK, *["verifier reject"] * 3)
    (uwf.place / "task.md").write_text("做一个网站\n")

    ran = uwf("plan", "run", "-f", str(uwf.place / "task.md"), "--agent", agent)
    assert (ran.status, json.loads(ran.out)["phase"]) == (3, "waiting_human")
    assert "缺少测试; write some" in ran.err
    assert uwf("plan", "run", "again", "--agent", agent).status == 1
    assert uwf("plan", "resume").status == 3
    assert uwf("plan", "resume", "--continue", "-m", "use make").status == 3
    stopped = uwf("plan", "resume", "--stop", "-m", "enough")

    assert (stopped.status, json.loads(stopped.out)["phase"]) == (1, "failed")
    assert "enough" in stopped.err
    assert (uwf.place / "asked").read_text().split().count("executor") == 6


@pytest.mark.parametrize(
    "words", [(), ("x", "-f", "y"), (" ",), ("x", "--ai", "a", "--agent", "b")]
)
def test_wrong_usage_begins_nothing(uwf: Uwf, words: tuple[str, ...]) -> None:
    assert uwf("plan", "run", *words).status == 2
    assert list(Path(uwf.place).iterdir()) == []


def test_a_task_that_is_missing_is_asked_for_as_this_command_takes_it(uwf: Uwf) -> None:
    for words in ((), (" ",)):
        ran = uwf("plan", "run", *words)
        assert (ran.status, "`uwf plan run TASK`" in ran.err) == (2, True)
        assert "-p TEXT" not in ran.err


def test_person_at_a_terminal_is_asked(uwf: Uwf, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = write_plan_agent(uwf.place, *["executor crash"] * 2)
    assert uwf("plan", "run", "x", "--agent", agent, "--max-retries", "1").status == 3
    monkeypatch.setattr("sys.stdin", io.StringIO("what\nc\nuse make\ns\n"))

    ran = uwf("plan", "resume", stdin_is_tty=True, stderr_is_tty=True)

    assert (ran.status, json.loads(ran.out)["phase"]) == (1, "failed")
    assert ran.err.count("Continue with fresh tries (c), or stop (s)?") == 3
    assert (uwf.place / "asked").read_text().split().count("executor") == 2
