"""`uwf plan run` with programs that stay open, and the hook that it writes for them."""

import json
import socket
from pathlib import Path

import pytest
from cli.program import Uwf

# How a program ends is in a file for each role: `report` before its stop; `stays`, `stubborn`,
# `fails`.
_SCRIPT = r"""#!/bin/sh
hook=.plugins/workflow/hooks/stop_hook
report() {
  printf '{"completed": true, "summary": "done", "files_created": ["%s"], "files_modified": [],
    "issues": [], "next_steps": []}' "$1" > .state/status.json
}
echo "$UWF_ROLE" >> asked
cp .state/workflow.state.json "state.$UWF_ROLE"
how=$(cat "$UWF_ROLE.how" 2> /dev/null)
case $UWF_ROLE in
planner) echo "# Do it." > docs/plans/000-做.md; claim=docs/plans/000-做.md ;;
executor) date > made; claim=made ;;
*)
  $hook < /dev/null
  rm -r .plugins # As `git clean -fdx` does.
  printf '{"content": "", "meta": {"verified": true, "checks": [], "issues": [], "suggestion": ""}}'
  exit ;;
esac
case $how in
*report*) report $claim ;;
esac
# As a tool does, which tells twice of each stop.
echo '{"session_id": "1"}' | $hook
echo '{"session_id": "1"}' | $hook
case $how in
*stubborn*) trap '' TERM; while :; do sleep 0.1; done ;;
*stays*) exec sleep 60 ;;
*fails*) exit 7 ;;
esac
report $claim
echo prose
"""


@pytest.fixture
def agent(uwf: Uwf) -> str:
    path = uwf.agent(_SCRIPT)
    uwf.json("config", "set", "plan.stopGrace", "0.2")
    return json.dumps({"command": path, "backoff": 0})


def say(uwf: Uwf, **how: str) -> None:
    for role, words in how.items():
        (uwf.place / f"{role}.how").write_text(words)


def read_log(uwf: Uwf) -> str:
    (log,) = (uwf.place / "docs/memory").iterdir()
    return log.read_text()


def test_programs_that_never_end_are_served(uwf: Uwf, agent: str) -> None:
    say(uwf, planner="report stays", executor="report stubborn")
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        uwf.json("config", "set", "plan.port", str(taken))

        ran = uwf("plan", "run", "做", "--agent", agent)

    assert ran.status == 0, ran.err
    asked = (uwf.place / "asked").read_text().split()
    assert asked == ["planner", "plan-verifier", "executor", "verifier"]
    seen = json.loads((uwf.place / "state.executor").read_text())
    assert (seen["address"], seen["phase"]) == ("127.0.0.1", "executing")
    assert seen["port"] not in {None, taken}
    assert json.loads((uwf.place / ".state/workflow.state.json").read_text())["port"] is None
    assert read_log(uwf).count("; stop notices: ") == 4
    assert uwf("verify").status == 0


def test_without_a_report_only_a_time_limit_ends_it(uwf: Uwf, agent: str) -> None:
    say(uwf, executor="stays")
    uwf.json("config", "set", "plan.executingTimeout", "1.5")

    ran = uwf("plan", "run", "做", "--agent", agent, "--max-retries", "1")

    assert (ran.status, json.loads(ran.out)["phase"]) == (3, "waiting_human")
    assert "exceeded its time limit" in ran.err
    assert "stop notices: 2" in read_log(uwf)


def test_notice_of_a_program_that_fails_is_no_success(uwf: Uwf, agent: str) -> None:
    """The settings name the agent, and how often it is tried."""
    path = Path(json.loads(agent)["command"])
    path.write_text(_SCRIPT.replace("echo prose", "exit 7"))
    uwf.json("config", "set", "plan.agent", str(path))
    uwf.json("config", "set", "plan.maxRetries", "1")

    uwf("plan", "run", "做", "--port", "0").says(3, "exit status 7")


def test_nobody_is_ended_if_the_grace_is_0_and_nobody_gets_a_hook_that_is_off(
    uwf: Uwf, agent: str
) -> None:
    say(uwf, executor="report stays")
    uwf.json("config", "set", "plan.stopGrace", "0")
    uwf.json("config", "set", "plan.hooks", "false")
    uwf.json("config", "set", "plan.executingTimeout", "1.5")
    path = Path(json.loads(agent)["command"])
    path.write_text(_SCRIPT.replace('echo "$UWF_ROLE"', 'echo "$UWF_ROLE$UWF_STOP_HOOK"'))

    ran = uwf("plan", "run", "做", "--agent", agent, "--max-retries", "1")

    assert "exceeded its time limit" in ran.err
    asked = (uwf.place / "asked").read_text().split()
    assert set(asked) == {"planner", "plan-verifier", "executor"}


def test_resume_listens_as_well(uwf: Uwf, agent: str) -> None:
    say(uwf, executor="fails")
    assert uwf("plan", "run", "做", "--agent", agent, "--max-retries", "1").status == 3
    say(uwf, executor="report stays")

    ran = uwf("plan", "resume", "--continue")

    assert ran.status == 0, ran.err
    assert json.loads(ran.out)["phase"] == "completed"
