import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from agentkit.conftest import MakeContext
from realcli.conftest import FRONT, Cli, wait_until
from realcli.vendors import GEMINI

from uwf_git.agentkit.ladder import Rungs, climb

VENDOR = GEMINI
AGENT = "uwf_git.agentkit.adapters.gemini"


def test_text(cli: Cli) -> None:
    answer = cli.ask_freely({"run": "echo hi | tee made"}, {"text": FRONT})

    assert answer.text == FRONT
    assert (cli.project / "made").read_text() == "hi\n"
    assert answer.usage["outputTokens"] == 14
    assert [each["output"] for each in answer.trace if each["type"] == "tool"] == ["hi"]


def test_long_prompt_goes_by_stdin(cli: Cli) -> None:
    assert cli.ask({"text": FRONT}, prompt="word " * 60_000).text == FRONT


def test_resume_costs_what_it_costs_alone(cli: Cli) -> None:
    first = cli.ask({"text": FRONT})

    second = cli.ask({"text": FRONT}, session=first.session, spent=first.usage)

    assert second.session == first.session
    assert second.usage == first.usage


def test_correction(cli: Cli, context: MakeContext) -> None:
    with cli.model({"text": "Fine.", "plain": True},
                   {"asked": "Your work is done and kept", "text": FRONT}) as model:  # fmt: skip
        result = climb(cli.vendor.adapter, context(), cli.question(model), Rungs())

    assert (result.meta, result.content) == ({"approved": True}, "Fine.")
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
    assert "scripted error" in failure.message


def test_tool_that_is_not_offered(cli: Cli) -> None:
    assert cli.ask({"run": "touch made"}).text == "no shell tool was offered"


def test_tools_of_uwf_can_be_used_once_the_user_has_added_them(cli: Cli) -> None:
    handed_in = {"meta": {"approved": True}, "content": "By the tool."}
    turns = ({"tool": "*submit_result", "args": handed_in}, {"text": "Done."})
    server = (sys.executable, "--", "-P", "-m", "uwf_git", "mcp")
    subprocess.run(
        ["gemini", "mcp", "add", "--scope", "user", "--trust", "uwf", *server],
        cwd=cli.project, env=cli.vendor.environ(cli.home, "http://127.0.0.1:1"),
        stdin=subprocess.DEVNULL, check=True,
    )  # fmt: skip

    with cli.playing(*turns, agent=AGENT, step=True, can_do_all=False) as child:
        stdout, stderr = child.communicate()

    assert child.returncode == 0, stderr
    reply = json.loads(stdout)
    assert (reply["meta"], reply["rung"]) == ({"approved": True}, "submitted")


def test_files_elsewhere_are_out_of_reach(cli: Cli) -> None:
    there, elsewhere = cli.project / "made", cli.home.parent / "made"

    for place in (there, elsewhere):
        write = {"tool": "write_file", "args": {"file_path": str(place), "content": "x"}}
        assert cli.ask(write, {"text": FRONT}).text == FRONT

    assert there.exists()
    assert not elsewhere.exists()


def test_timeout(cli: Cli) -> None:
    assert cli.fail({"text": "", "hang": True}, timeout_s=4).kind == "timed-out"


def test_silence(cli: Cli) -> None:
    failure = cli.fail({"text": "", "hang": True}, silence_s=4)

    assert failure.kind == "silent"
    assert failure.partial is not None


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
