import os
import signal
import subprocess
from pathlib import Path

import pytest
from commands.at_work import wait_until
from realcli.conftest import FRONT, Cli
from realcli.vendors import AIDER

VENDOR = AIDER


def test_text(cli: Cli) -> None:
    answer = cli.ask({"text": FRONT})

    assert answer.text.strip() == FRONT.strip()
    assert answer.usage == {"inputTokens": 11, "outputTokens": 7, "turns": 1}
    assert not (cli.project / ".git").exists()


def test_edit(cli: Cli) -> None:
    (cli.project / "a.py").write_text("x = 1\n")
    subprocess.run(["git", "init", "--quiet"], cwd=cli.project, check=True)

    assert cli.ask({"text": "Here:\n\na.py\n```\nx = 2\n```\n\nDone.\n"}).text.endswith("Done.")
    assert (cli.project / "a.py").read_text() == "x = 2\n"


def test_long_prompt_goes_by_a_file(cli: Cli) -> None:
    assert cli.ask({"text": FRONT}, prompt="word " * 60_000).text.strip() == FRONT.strip()


def test_model_that_says_nothing(cli: Cli) -> None:
    assert cli.fail({"text": ""}).kind == "no-result"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_kill_leaves_nothing(cli: Cli, number: signal.Signals) -> None:
    with cli.playing({"text": FRONT}) as child:
        wait_until(lambda: "aider" in "\n".join(running(cli.home)), "it has not begun")
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
        except OSError:  # it ended just now, or another user owns it
            continue
    return [command for command in found if "uwf_git" not in command]
