import os
from pathlib import Path

from cli.program import Uwf

ANSWER = (
    """echo '{"meta": {"ok": true}, "content": "Here.", "usage": {"turns": 1}}'; echo working >&2"""
)


def test_step_is_reported(uwf: Uwf) -> None:
    agent = uwf.agent(ANSWER)
    ran = uwf("agent", "check", f"{agent} --x", "--format", "yaml")

    assert ran.status == 0
    assert "heard: false\nmeta:\n  ok: true\ncontent: Here.\n" in ran.out
    assert "usage:\n  turns: 1\n" in ran.out
    assert ran.err == (
        f"working\n{agent} --x answered without the word from the prompt: did it read the prompt?\n"
    )


def test_failure_has_the_agent_s_status(uwf: Uwf) -> None:
    ran = uwf("agent", "check", uwf.agent("echo no >&2; exit 1"))

    assert (ran.status, ran.out) == (3, "")
    assert "took no step: exit status 1: no" in ran.err


def test_user_without_a_store_can_check_as_well(uwf: Uwf) -> None:
    agent = uwf.agent(ANSWER)

    assert uwf.json("agent", "check", agent, repo=None)["meta"] == {"ok": True}
    assert not Path(os.environ["HOME"], ".uwf").exists()


def test_contradiction_is_refused(uwf: Uwf) -> None:
    assert uwf("agent", "check", uwf.agent(ANSWER), "--timeout", "0").status == 2
    assert uwf("agent", "check", "'open").status == 1
    assert uwf("agent", "check", "\udcff").status == 1
