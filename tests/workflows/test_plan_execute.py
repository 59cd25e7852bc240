"""`plan-execute` with an agent that is a program, through its checks and verdicts."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.conftest import session, uwf
from cli.program import Uwf
from workflows.plan_agent import write_plan_agent

__all__ = ["session", "uwf"]

TASK = "做一个网站 with a page"
PLANNED = ["planner", "plan-verifier"]
DONE = ["executor", "verifier"]


def begin(uwf: Uwf, *say: str) -> str:
    agent = write_plan_agent(uwf.place, *say)
    started = uwf.json("thread", "start", "plan-execute", "-p", TASK, "--agent", agent)
    return str(started["thread"])


def asked(uwf: Uwf) -> list[str]:
    return (uwf.place / "asked").read_text().split()


@pytest.mark.parametrize(
    ("say", "roles"),
    [
        ((), [*PLANNED, *DONE, *DONE]),
        (
            ("planner incomplete", "plan-verifier reject", "executor lie", "verifier reject"),
            ["planner", *PLANNED, *PLANNED, "executor", *DONE, *DONE, *DONE],
        ),
    ],
    ids=["all goes well", "each is tried again"],
)
def test_plans_are_carried_out_in_order(uwf: Uwf, say: tuple[str, ...], roles: list[str]) -> None:
    thread = begin(uwf, *say)

    ran = uwf("thread", "run", thread)

    assert json.loads(ran.out)["status"] == "completed", ran.err
    assert asked(uwf) == roles
    rows = [(row["name"], row["status"]) for row in plans(uwf, thread)]
    assert rows == [("准备", "completed"), ("write", "completed")]
    assert uwf("verify").status == 0


def plans(uwf: Uwf, thread: str) -> list[dict[str, str]]:
    # An ended thread is found by the state file alone.
    (uwf.place / ".state/workflow.state.json").write_text(json.dumps({"thread": thread}))
    rows: list[dict[str, str]] = uwf.json("plan", "plans")
    return rows


def test_crash_lie_and_rejection_use_up_the_tries_of_one_plan(uwf: Uwf) -> None:
    say = ("executor crash", "executor lie", "verifier reject")
    thread = begin(uwf, *say)

    ran = uwf("thread", "run", thread)

    assert ran.status == 3
    assert "缺少测试; write some" in ran.err
    assert asked(uwf) == [*PLANNED, "executor", "executor", *DONE]
    assert [row["status"] for row in plans(uwf, thread)] == ["failed", "pending"]
    uwf.json("thread", "retry", thread, "-m", "use make")
    assert uwf("thread", "run", thread).status == 0
    assert asked(uwf)[6:] == [*DONE, *DONE]


def test_plan_whose_executor_crashed_is_not_done_because_an_earlier_one_was(uwf: Uwf) -> None:
    thread = begin(uwf, "executor ok", *["executor crash"] * 3)

    assert uwf("thread", "run", thread).status == 3
    assert [row["status"] for row in plans(uwf, thread)] == ["completed", "failed"]
    assert asked(uwf) == [*PLANNED, *DONE, *["executor"] * 3]


def test_gaps_are_told_to_the_verifier_only(uwf: Uwf) -> None:
    (uwf.place / "docs/plans").mkdir(parents=True)
    thread = begin(uwf, "planner gap")
    told = "which printed:\n\n<checks>\n$ uwf-check plans\nthere is no plan 001-004\n"
    for is_told in (False, True, False, False):
        assert (told in uwf("thread", "context", thread, "--prompt").out) is is_told
        assert uwf("thread", "step", thread).status == 0


def test_prompts(uwf: Uwf, golden: Callable[[str, str | bytes], None]) -> None:
    thread = begin(uwf, "plan-verifier reject", "executor lie")
    prompts = []
    # The planner twice, each with its verifier, the list, the executor twice, its verifier.
    for _ in range(8):
        prompts.append(uwf("thread", "context", thread, "--prompt").out)
        assert uwf("thread", "step", thread).status in {0, 3}

    text = ("\n" + "=" * 80 + "\n").join(prompts)
    golden(
        "prompts/plan-execute.md", text.replace(thread, "THREAD").replace(str(uwf.place), "PLACE")
    )


def test_file_is_a_shipped_workflow(uwf: Uwf) -> None:
    shown = uwf.json("workflow", "show", "plan-execute")

    assert shown["name"] == "plan-execute"
    assert Path(__file__).parents[2].joinpath("workflows/plan-execute.yaml").is_file()


@pytest.mark.parametrize(("word", "tries"), [("widen", 2), ("seize", 3)])
def test_report_cannot_change_what_the_plans_go_by(uwf: Uwf, word: str, tries: int) -> None:
    thread = begin(uwf, f"executor {word}")

    ran = uwf("thread", "run", thread)

    assert json.loads(ran.out)["status"] == "completed", ran.err
    assert asked(uwf).count("executor") == tries
    assert uwf.json("thread", "show", thread)["state"]["maxRetries"] == 3
    assert [row["status"] for row in plans(uwf, thread)] == ["completed", "completed"]
