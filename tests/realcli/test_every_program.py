"""Behaviour that all programs share; each program has a module for the rest."""

import os
import shutil
import signal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from agentkit.conftest import MakeContext
from commands.at_work import wait_until
from realcli.conftest import FRONT, SCHEMA, Cli
from realcli.vendors import (
    AIDER,
    CLAUDE,
    CODEX,
    COPILOT,
    GEMINI,
    HERMES,
    INSTALLED,
    OPENCODE,
    QWEN,
    Vendor,
    is_here,
)

from uwf_git.agentkit.ladder import Fallbacks, extract_with_fallbacks

NOBODY = "00000000-0000-4000-8000-000000000000"


class Ways(NamedTuple):
    """The differences of one program in the shared behaviour."""

    tools: list[tuple[str, str]]
    """The trace of the tool that ran `echo hi`: its name, and its output."""

    usage: dict[str, int]
    """The extra usage that it reports for two calls of the model."""

    begins_s: float
    """Seconds after which it has surely begun to call the model."""

    nobody: str = NOBODY
    """An unknown session id, in the form that it uses."""

    nulls: bool = False
    """Its models write null for fields that they leave out."""

    words: str = "Fine."
    """The text that it returns for a corrected answer."""

    corrected_tokens: int = 14

    login_words: str = "scripted error"
    """Its error if the endpoint does not know the key."""


WAYS = {
    "claude": Ways([("Bash", "hi")], {"turns": 2}, 4),
    "codex": Ways([("command_execution", "hi\n")], {}, 4, nulls=True),
    "gemini": Ways([("run_shell_command", "hi")], {}, 4),
    "opencode": Ways([("bash", "hi\n")], {"turns": 2}, 15, nobody=f"ses_{NOBODY}"),
    "copilot": Ways(
        [("bash", "hi\n<shellId: 0 completed with exit code 0>")],
        {"turns": 2},
        6,
        login_words="Authentication failed",
    ),
    "qwen": Ways([("run_shell_command", "hi")], {"turns": 2}, 6),
    # It reports no usage for a resumed session.
    "hermes": Ways([], {"turns": 2}, 10, words="Fine.\n", corrected_tokens=7),
    "aider": Ways([], {}, 20),
}

ALL_BUT_AIDER = (CLAUDE, CODEX, GEMINI, OPENCODE, COPILOT, QWEN, HERMES)


def test_no_program_that_is_installed_is_skipped() -> None:
    for vendor in (*ALL_BUT_AIDER, AIDER):
        places = [f"{INSTALLED}/bin", f"{INSTALLED}/node_modules/.bin"]
        if shutil.which(vendor.name, path=os.pathsep.join(places)):
            assert is_here(vendor)


def programs(*vendors: Vendor) -> pytest.MarkDecorator:
    """Run a test once for each of these programs."""
    return pytest.mark.parametrize(
        "cli", vendors, indirect=True, ids=[vendor.name for vendor in vendors]
    )


def ways(cli: Cli) -> Ways:
    """Return those of the program under test."""
    return WAYS[cli.vendor.name]


def answer_of(cli: Cli, *optional: str) -> dict[str, Any]:
    """Return an answer that fits a role with such optional fields."""
    nulls = dict.fromkeys(optional) if ways(cli).nulls else {}
    return {"content": "It is **fine**.", "meta": {"approved": True, **nulls}}


@programs(*ALL_BUT_AIDER)
def test_text(cli: Cli) -> None:
    answer = cli.ask_freely({"run": "echo hi | tee made"}, {"text": FRONT})

    assert answer.text == FRONT
    assert (cli.project / "made").read_text() == "hi\n"
    assert answer.session
    assert answer.usage.items() >= {"outputTokens": 14, **ways(cli).usage}.items()
    tools = [each for each in answer.trace if each["type"] == "tool"]
    assert [(each["name"], each["output"]) for each in tools] == ways(cli).tools


@programs(CLAUDE, CODEX, GEMINI, OPENCODE, COPILOT, QWEN)
def test_long_prompt_is_no_argument(cli: Cli) -> None:
    assert cli.ask({"text": FRONT}, prompt="word " * 60_000).text == FRONT


@programs(CLAUDE, CODEX, QWEN)
def test_schema(cli: Cli) -> None:
    answer = cli.ask({"json": answer_of(cli, "summary")}, schema=SCHEMA)

    assert (answer.structured, answer.text) == ({"approved": True}, "It is **fine**.")


@programs(CODEX, GEMINI, OPENCODE, COPILOT)
def test_resume_costs_what_it_costs_alone(cli: Cli) -> None:
    first, second = cli.ask_twice()

    assert second.text == FRONT
    assert second.usage == first.usage


@programs(*ALL_BUT_AIDER)
def test_correction(cli: Cli, context: MakeContext) -> None:
    is_native = cli.vendor.adapter.takes_schema
    fits = {"json": answer_of(cli, "severity", "comments")} if is_native else {"text": FRONT}
    with cli.model({"text": "Fine.", "plain": True},
                   {"asked": "Your work is done and kept", **fits}) as model:  # fmt: skip
        result = extract_with_fallbacks(
            cli.vendor.adapter, context(), cli.question(model), Fallbacks()
        )

    assert (result.meta, result.content) == ({"approved": True}, ways(cli).words)
    assert result.rung == ("native-corrected" if is_native else "front-matter-corrected")
    assert result.usage is not None
    assert result.usage["outputTokens"] >= ways(cli).corrected_tokens


@programs(*ALL_BUT_AIDER)
def test_unknown_session(cli: Cli) -> None:
    assert cli.fail({"text": FRONT}, session=ways(cli).nobody).kind == "no-session"


@pytest.mark.parametrize(("status", "kind"), [(400, "model-error"), (401, "auth")])
@programs(*ALL_BUT_AIDER, AIDER)
def test_error(cli: Cli, status: int, kind: str) -> None:
    failure = cli.fail({"status": status, "message": "scripted error"})

    assert failure.kind == kind
    assert (ways(cli).login_words if status == 401 else "scripted error") in failure.message


@programs(CLAUDE, CODEX, OPENCODE, COPILOT, QWEN)
def test_tools_of_uwf_can_be_used(cli: Cli) -> None:
    reply = cli.play_by_tool()

    assert (reply["meta"], reply["rung"]) == ({"approved": True}, "submitted")


@pytest.mark.parametrize(
    ("cli", "tool", "path"),
    [(GEMINI, "write_file", "file_path"), (OPENCODE, "write", "filePath")],
    indirect=["cli"],
    ids=["gemini", "opencode"],
)
def test_files_elsewhere_are_out_of_reach(cli: Cli, tool: str, path: str) -> None:
    there, elsewhere = cli.project / "made", cli.home.parent / "made"

    for place in (there, elsewhere):
        write = {"tool": tool, "args": {path: str(place), "content": "x"}}
        assert cli.ask(write, {"text": FRONT}).text == FRONT

    assert there.exists()
    assert not elsewhere.exists()


@programs(*ALL_BUT_AIDER, AIDER)
def test_timeout(cli: Cli) -> None:
    assert cli.fail({"text": "", "hang": True}, timeout_s=ways(cli).begins_s).kind == "timed-out"


# The others print nothing before they have finished, or say all the time that they wait.
@programs(CLAUDE, CODEX, GEMINI)
def test_silence(cli: Cli) -> None:
    failure = cli.fail({"text": "", "hang": True}, silence_s=ways(cli).begins_s)

    assert failure.kind == "silent"
    assert failure.partial is not None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@programs(*ALL_BUT_AIDER)
def test_kill_leaves_nothing(cli: Cli, number: signal.Signals) -> None:
    begun = cli.project / "begun"

    with cli.playing({"run": "touch begun; sleep 300"}, {"text": FRONT}) as child:
        wait_until(begun.exists, "it has not begun")
        os.kill(child.pid, number)
        child.wait()

    assert cli.survivors() == []


@programs(*ALL_BUT_AIDER)
def test_program_is_found_where_the_setting_says(cli: Cli, tmp_path: Path) -> None:
    assert cli.fail({"text": FRONT}, program=str(tmp_path / "nowhere")).kind == "missing"
