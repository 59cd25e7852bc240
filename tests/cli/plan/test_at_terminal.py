"""`uwf plan run` and `resume` at a real terminal (pty): a used-up phase asks, and says why."""

import json
from functools import partial
from pathlib import Path

import pytest
from agentkit.person import Seat
from cli.program import Uwf
from workflows.plan_agent import write_plan_agent

ASKED = "Continue with fresh tries (c), or stop (s)? "
CTRL_C = "\x03"


@pytest.fixture
def plan(uwf: Uwf, seat: Seat) -> Seat:
    """Start `uwf plan …` at a terminal."""
    own = {"UWF_REPO": str(uwf.session.repo), "TERM": "xterm"}
    return partial(seat, "-m", "uwf_git", "plan", cwd=uwf.place, **own)


def test_used_up_phase_asks_and_says_why_each_try_failed(uwf: Uwf, plan: Seat) -> None:
    say = ("executor crash", "executor lie", "executor crash", "verifier reject")
    run = plan(
        "run", "做一个网站", "--agent", write_plan_agent(uwf.place, *say), "--max-retries", "2"
    )
    shown = run.wait_for(ASKED)
    assert "the execution of docs/plans/000-准备.md has failed:\n" in shown
    assert "try 1: exit status 1\ntry 2: files_created names 'src/nowhere'" in shown
    run.type("c\n")
    run.wait_for("A hint for the next try (Enter: none): ")
    run.type("用 make\n")
    told = "try 1: exit status 1\ntry 2: rejected: 缺少测试; write some\n"
    assert told in run.wait_for(ASKED)
    run.type(CTRL_C)
    assert run.end()[0] == 130
    assert state(uwf.place) == "waiting_human"

    resumed = plan("resume")
    assert told in resumed.wait_for(ASKED)
    resumed.type("s\n")
    status, shown = resumed.end()
    assert (status, "the plans were stopped\n" in shown) == (1, True)
    assert state(uwf.place) == "failed"


def test_ctrl_c_loses_nothing(uwf: Uwf, plan: Seat) -> None:
    agent = write_plan_agent(uwf.place, "planner hang")

    run = plan("run", "做一个网站", "--agent", agent, "--max-retries", "2")
    run.wait_for("I am at work.")
    run.type(CTRL_C)
    status, shown = run.end()
    assert (status, "nothing was lost: `uwf plan resume` goes on" in shown) == (130, True)

    assert plan("resume").end()[0] == 0
    assert state(uwf.place) == "completed"


def state(place: Path) -> str:
    document = json.loads((place / ".state/workflow.state.json").read_text())
    assert document["maxRetries"] == 2
    return str(document["phase"])
