import json
import os
import signal
from pathlib import Path

import pytest
from agentkit.conftest import MakeContext
from realcli.conftest import FRONT, Cli, wait_until
from realcli.other_vendors import COPILOT

from uwf_git.agentkit.ladder import Rungs, climb

VENDOR = COPILOT
AGENT = "uwf_git.agentkit.adapters.copilot"


def test_text(cli: Cli) -> None:
    answer = cli.ask_freely({"run": "echo hi | tee made"}, {"text": FRONT})

    assert answer.text.strip() == FRONT.strip()
    assert (cli.project / "made").read_text() == "hi\n"
    assert answer.session
    assert answer.usage["outputTokens"] == 14
    assert answer.usage["turns"] == 2
    assert [each["name"] for each in answer.trace if each["type"] == "tool"] == ["bash"]


def test_long_prompt_goes_by_stdin(cli: Cli) -> None:
    assert cli.ask({"text": FRONT}, prompt="word " * 60_000).text == FRONT


def test_resume_costs_what_it_costs_alone(cli: Cli) -> None:
    first = cli.ask({"text": FRONT})

    second = cli.ask({"text": FRONT}, session=first.session, spent=first.usage)

    assert second.session == first.session
    assert second.text.strip() == FRONT.strip()
    assert second.usage == first.usage


def test_correction(cli: Cli, context: MakeContext) -> None:
    with cli.model({"text": "Fine.", "plain": True},
                   {"asked": "Your work is done and kept", "text": FRONT}) as model:  # fmt: skip
        result = climb(cli.vendor.adapter, context(), cli.question(model), Rungs())

    assert (result.meta, result.content.strip()) == ({"approved": True}, "Fine.")
    assert result.rung == "front-matter-corrected"
    assert result.usage is not None
    assert result.usage["outputTokens"] >= 14


def test_unknown_session(cli: Cli) -> None:
    session = "00000000-0000-4000-8000-000000000000"

    assert cli.fail({"text": FRONT}, session=session).kind == "no-session"


@pytest.mark.parametrize(("status", "kind"), [(400, "model-error"), (401, "auth")])
def test_error(cli: Cli, status: int, kind: str) -> None:
    failure = cli.fail({"status": status, "message": "scripted error"})

    assert failure.kind == kind


def test_tools_of_uwf_can_be_used(cli: Cli) -> None:
    handed_in = {"meta": {"approved": True}, "content": "By the tool."}
    turns = ({"tool": "*submit_result", "args": handed_in}, {"text": "Done."})

    with cli.playing(*turns, agent=AGENT, step=True) as child:
        stdout, stderr = child.communicate()

    assert child.returncode == 0, stderr
    reply = json.loads(stdout)
    assert (reply["meta"], reply["rung"]) == ({"approved": True}, "submitted")


def test_refused_tool(cli: Cli) -> None:
    answer = cli.ask({"run": "touch made"}, {"text": FRONT}, permission="none")

    assert [each["ok"] for each in answer.trace if each["type"] == "tool"] == [False]
    assert not (cli.project / "made").exists()


def test_timeout(cli: Cli) -> None:
    assert cli.fail({"text": "", "hang": True}, timeout_s=6).kind == "timed-out"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_kill_leaves_nothing(cli: Cli, number: signal.Signals) -> None:
    begun = cli.project / "begun"
    turns = ({"run": "touch begun; sleep 300"}, {"text": FRONT})

    with cli.playing(*turns, agent=AGENT) as child:
        wait_until(begun.exists)
        os.kill(child.pid, number)
        child.wait()

    assert cli.survivors() == []


def test_program_is_found_where_the_setting_says(cli: Cli, tmp_path: Path) -> None:
    failure = cli.fail({"text": FRONT}, program=str(tmp_path / "nowhere"))

    assert failure.kind == "missing"
