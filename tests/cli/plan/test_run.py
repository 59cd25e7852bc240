"""`uwf plan run` and `uwf plan resume`, with an agent that is a program."""

import json
import time
from shutil import copy

import pytest
from cli.program import Uwf
from commands.at_work import wait_until
from workflows.plan_agent import write_plan_agent

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
    uwf("plan", "run", "more", "--agent", agent).says(1, "plan files already")
    assert uwf("plan", "resume").status == 1


def test_used_up_tries_wait_and_resume_decides(uwf: Uwf) -> None:
    agent = write_plan_agent(uwf.place, *STUCK, *["verifier reject"] * 3)
    (uwf.place / "task.md").write_text("做一个网站\n")

    ran = uwf("plan", "run", "-f", str(uwf.place / "task.md"), "--agent", agent)
    assert (ran.status, json.loads(ran.out)["phase"]) == (3, "waiting_human")
    assert "缺少测试; write some" in ran.err
    assert uwf("plan", "run", "again", "--agent", agent).status == 1
    assert uwf("plan", "resume").status == 3
    uwf("plan", "resume", "-m", "use make").says(3, "not given without --continue")
    assert uwf("plan", "resume", "--continue", "--stop").status == 2
    assert uwf("plan", "resume", "--continue", "-m", "use make").status == 3
    stopped = uwf("plan", "resume", "--stop", "-m", "enough")

    assert (stopped.status, json.loads(stopped.out)["phase"]) == (1, "failed")
    assert "enough" in stopped.err
    assert (uwf.place / "asked").read_text().split().count("executor") == 6


def test_background_returns_at_once_and_the_driver_does_the_rest(uwf: Uwf) -> None:
    agent = write_plan_agent(uwf.place, "executor crash")
    words = ("plan", "run", "x", "--agent", agent, "--max-retries", "1", "--background")
    (uwf.place / "old").mkdir()
    copy(uwf.place / "say", uwf.place / "old")

    thread = uwf.json(*words, "-d", "old")["thread"]
    assert uwf("thread", "wait", thread).status == 3
    # Also in a directory that was renamed meanwhile.
    (uwf.place / "old").rename(uwf.place / "new")
    assert uwf.json("plan", "status", "-d", "new")["phase"] == "waiting_human"
    uwf.json("plan", "resume", "--continue", "--background", "-d", "new")
    assert uwf("thread", "wait", thread).status == 0

    # The driver writes the view once the thread has ended.
    state = uwf.place / "new/.state/workflow.state.json"
    wait_until(lambda: json.loads(state.read_text())["phase"] == "completed", "the view")
    assert "Done." in uwf("thread", "logs", thread).out


def test_a_usage_limit_is_waited_for_in_the_background_too(uwf: Uwf) -> None:
    agent = write_plan_agent(uwf.place, "planner limit")
    thread = uwf.json("plan", "run", "x", "--agent", agent, "--background")["thread"]
    uwf("thread", "wait", thread)

    assert uwf.json("plan", "resume", "--wait", "--background")["thread"] == thread
    assert uwf("thread", "wait", thread, "--timeout", "0").status != 0
    uwf.json("thread", "kill", thread)


def test_plan_files_that_lie_there_are_carried_out_without_a_planner(uwf: Uwf) -> None:
    agent = write_plan_agent(uwf.place)
    assert uwf("plan", "run", "--plans", "--agent", agent).status == 1
    (uwf.place / "docs/plans").mkdir(parents=True)
    (uwf.place / "docs/plans/007-写.md").write_bytes("\ufeffWrite src/a.\r\n".encode())
    assert uwf("plan", "run", "x", "--agent", agent).status == 1

    ran = uwf("plan", "run", "--plans", "--agent", agent)

    assert ran.status == 0, ran.err
    assert (uwf.place / "asked").read_text().split() == ["executor", "verifier"]
    assert uwf.json("plan", "plans")[0]["status"] == "completed"
    assert uwf.json("plan", "status")["task"] == "Carry out the plans in docs/plans."


def test_resume_may_change_how_many_tries_there_are(uwf: Uwf) -> None:
    agent = write_plan_agent(uwf.place, *["executor crash"] * 3)
    assert uwf("plan", "run", "x", "--agent", agent, "--max-retries", "1").status == 3

    assert uwf("plan", "resume", "--max-retries", "1").status == 3
    uwf.json("thread", "amend", "@", "--max-steps", "3")
    uwf("plan", "resume", "--max-retries", "2").says(1, "is at its limit: 3 of 3 steps")
    assert "is at its limit: 3 of 3 steps" in uwf.json("plan", "status")["limit"]
    uwf.json("thread", "amend", "@", "--max-steps", "30")
    ran = uwf("plan", "resume", "--max-retries", "3")

    assert ran.status == 0, ran.err
    assert json.loads(ran.out)["maxRetries"] == 3
    assert (uwf.place / "asked").read_text().split().count("executor") == 5


def test_usage_limit_waits_and_resume_tries_at_once(uwf: Uwf) -> None:
    agent = write_plan_agent(uwf.place, "executor limit")

    ran = uwf("plan", "run", "x", "--agent", agent, "--max-retries", "1")

    assert (ran.status, "for the end of an agent's limit" in ran.err) == (3, True)
    told = json.loads(ran.out)
    assert (told["phase"], told["currentPlan"], told["retryCount"]) == ("executing", "000-准备", 0)
    assert told["until"] == "2100-01-01T00:00:00+00:00"
    uwf("plan", "resume", "--continue", "-m", "be quick").says(0, "no agent is told the hint")


def test_usage_limit_is_slept_through_if_asked(uwf: Uwf) -> None:
    agent = write_plan_agent(uwf.place, "planner soon", "executor soon")

    words = ("plan", "run", "x", "--agent", agent, "--max-retries", "1", "--wait")
    ran = uwf(*words, now_ms=lambda: time.time_ns() // 10**6)

    assert (ran.status, ran.err.count("waits until")) == (0, 2)


@pytest.mark.parametrize(
    ("verified", "verifiers"), [((), "./other"), (("--verifier", "./plan-agent"), "./plan-agent")]
)
def test_resume_may_change_who_plays(uwf: Uwf, verified: tuple[str, ...], verifiers: str) -> None:
    agent = write_plan_agent(uwf.place, "executor limit")
    copy(uwf.place / "plan-agent", uwf.place / "other")
    assert uwf("plan", "run", "x", "--agent", agent, *verified).status == 3

    ran = uwf("plan", "resume", "--agent", "./other")

    assert ran.status == 0, ran.err
    rows = uwf.json("thread", "show", "--full", json.loads(ran.out)["thread"])["steps"]
    who = {row["role"]: row["agent"] for row in rows}
    assert (who["executor"], who["verifier"]) == ("./other", verifiers)


def test_pause_is_ended_and_a_person_s_turn_is_not(uwf: Uwf) -> None:
    agent = write_plan_agent(uwf.place, "executor crash")
    words = ("plan", "run", "x", "--agent", agent, "--verifier", "human", "--max-retries", "1")

    uwf(*words).says(3, "uwf thread answer")
    uwf("plan", "resume").says(3, "uwf thread answer")
    thread = uwf.json("plan", "status")["thread"]
    verdict = {"verified": True, "checks": [], "issues": [], "suggestion": ""}
    uwf.json("thread", "answer", thread, "--meta", json.dumps(verdict))
    uwf.json("thread", "pause", thread)
    assert uwf("plan", "resume").status == 3
    assert uwf.json("plan", "status")["error"] == "exit status 1"
    uwf.json("thread", "pause", thread)
    assert uwf("plan", "resume").status == 3
    assert uwf("plan", "resume", "--continue").status == 3
    assert "uwf thread answer" in uwf("plan", "resume").err
