import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from realcli.conftest import FRONT, Cli, wait_until
from realcli.named_model import NamedModelCli
from realcli.other_vendors import AIDER, serve_for

from uwf_git.agentkit.adapter import Answer, NoAnswer

VENDOR = AIDER


@pytest.fixture
def cli(cli: Cli) -> Cli:
    """Name the model as it does."""
    return NamedModelCli(cli.vendor, cli.home, cli.project)


def ask(cli: Cli, *turns: dict[str, Any], **more: Any) -> Answer:
    with serve_for(AIDER, *turns) as model:
        return AIDER.adapter.ask(cli.question(model, **more))


def fail(cli: Cli, *turns: dict[str, Any], **more: Any) -> NoAnswer:
    with pytest.raises(NoAnswer) as caught:
        ask(cli, *turns, **more)
    return caught.value


def test_text(cli: Cli) -> None:
    answer = ask(cli, {"text": FRONT})

    assert answer.text.strip() == FRONT.strip()
    assert answer.usage == {"inputTokens": 11, "outputTokens": 7, "turns": 1}
    assert not (cli.project / ".git").exists()


def test_edit(cli: Cli) -> None:
    (cli.project / "a.py").write_text("x = 1\n")
    subprocess.run(["git", "init", "--quiet"], cwd=cli.project, check=True)

    answer = ask(cli, {"text": "Here:\n\na.py\n```\nx = 2\n```\n\nDone.\n"})

    assert answer.text.endswith("Done.")
    assert (cli.project / "a.py").read_text() == "x = 2\n"


def test_long_prompt_goes_by_a_file(cli: Cli) -> None:
    assert ask(cli, {"text": FRONT}, prompt="word " * 60_000).text.strip() == FRONT.strip()


@pytest.mark.parametrize(("status", "kind"), [(400, "model-error"), (401, "auth")])
def test_error(cli: Cli, status: int, kind: str) -> None:
    failure = fail(cli, {"status": status, "message": "scripted error"})

    assert failure.kind == kind
    assert "scripted error" in failure.message


def test_model_that_says_nothing(cli: Cli) -> None:
    assert fail(cli, {"text": ""}).kind == "no-result"


def test_timeout(cli: Cli) -> None:
    assert fail(cli, {"text": "", "hang": True}, timeout_s=20).kind == "timed-out"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_kill_leaves_nothing(cli: Cli, number: signal.Signals) -> None:
    with cli.playing({"text": FRONT}, agent="uwf_git.agentkit.adapters.aider") as child:
        wait_until(lambda: any("aider" in command for command in running(cli.home)))
        os.kill(child.pid, number)
        child.wait()

    assert cli.survivors() == []


def running(home: Path) -> list[str]:
    """List the programs that are at home there."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"HOME={home}\0".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_text())
        except OSError:  # it ended just now, or is somebody else's
            continue
    return [command for command in found if "uwf_git" not in command]
