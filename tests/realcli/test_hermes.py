import os
import signal
from pathlib import Path

import pytest
from agentkit.conftest import MakeContext
from realcli.conftest import FRONT, Cli, wait_until
from realcli.other_vendors import HERMES

from uwf_git.agentkit.ladder import Rungs, climb

VENDOR = HERMES
AGENT = "uwf_git.agentkit.adapters.hermes"


def test_text(cli: Cli) -> None:
    answer = cli.ask_freely({"run": "echo hi | tee made"}, {"text": FRONT})

    assert answer.text.strip() == FRONT.strip()
    assert (cli.project / "made").read_text() == "hi\n"
    assert answer.session
    assert answer.usage["outputTokens"] == 14
    assert answer.usage["turns"] == 2


def test_commands_can_be_taken_away_in_both_forms(cli: Cli) -> None:
    first = cli.ask({"run": "touch made"}, permission="file")

    second = cli.ask({"run": "touch made"}, permission="file", session=first.session)

    assert first.text.strip() == second.text.strip() == "no shell tool was offered"
    assert not (cli.project / "made").exists()


def test_prompt_that_no_argument_holds_is_refused(cli: Cli) -> None:
    assert cli.ask({"text": FRONT}, prompt="x" * 131_000).text.strip() == FRONT.strip()
    assert cli.fail({"text": FRONT}, prompt="x" * 140_000).kind == "too-long"


def test_resume_costs_what_it_costs_alone(cli: Cli) -> None:
    first = cli.ask({"text": FRONT})

    second = cli.ask({"text": FRONT}, session=first.session, spent=first.usage)

    assert second.session == first.session
    assert second.text.strip() == FRONT.strip()
    assert second.usage == {}


def test_correction(cli: Cli, context: MakeContext) -> None:
    with cli.model({"text": "Fine.", "plain": True},
                   {"asked": "Your work is done and kept", "text": FRONT}) as model:  # fmt: skip
        result = climb(cli.vendor.adapter, context(), cli.question(model), Rungs())

    assert (result.meta, result.content.strip()) == ({"approved": True}, "Fine.")
    assert result.rung == "front-matter-corrected"
    assert result.usage is not None
    assert result.usage["outputTokens"] >= 7


def test_unknown_session(cli: Cli) -> None:
    session = "00000000-0000-4000-8000-000000000000"

    assert cli.fail({"text": FRONT}, session=session).kind == "no-session"


@pytest.mark.parametrize(("status", "kind"), [(400, "model-error"), (401, "auth")])
def test_error(cli: Cli, status: int, kind: str) -> None:
    failure = cli.fail({"status": status, "message": "scripted error"})

    assert failure.kind == kind


def test_model_that_says_nothing(cli: Cli) -> None:
    assert cli.fail({"text": ""}).kind == "no-result"


def test_timeout(cli: Cli) -> None:
    assert cli.fail({"text": "", "hang": True}, timeout_s=10).kind == "timed-out"


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
