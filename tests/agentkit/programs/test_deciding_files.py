import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from uwf_git.agentkit.programs.playing import (
    PROVIDER_VARIABLES,
    find_mcp_entry,
    is_below,
    list_deciding_files,
    mcp_toml,
)
from uwf_git.agentkit.turn import AdapterQuestion
from uwf_git.agents.nested import allowed_environment


def test_files_that_decide_what_runs_are_listed() -> None:
    environ = {"HOME": "/h", "UWF_REPO": "/w/store.git", "GIT_CONFIG_GLOBAL": "/h/mine"}

    assert list_deciding_files(environ) == [
        "/w/store.git",
        "/h/.local/state/uwf/stores",
        "/h/.gitconfig",
        "/h/.config/git",
        "/h/mine",
    ]
    assert list_deciding_files({}) == []


def test_links_hide_nothing(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "link").symlink_to("store")

    assert is_below(f"{tmp_path}/link/new/config", [f"{tmp_path}/store"])
    assert is_below(f"{tmp_path}/store", [f"{tmp_path}/link"])
    assert not is_below(f"{tmp_path}/store.git", [f"{tmp_path}/store"])


TURN = {
    "UWF_REPO": '/srv/a "b"\\c.git',
    "UWF_THREAD_ID": "T",
    "UWF_ROLE": "counter",
    "UWF_STEP_DIR": "/srv/\x7fstep",
    "UWF_HEAD": "",
    "OPENAI_API_KEY": "k",
}
PASSED = {name: TURN[name] for name in ("UWF_REPO", "UWF_THREAD_ID", "UWF_ROLE", "UWF_STEP_DIR")}


def turn(environ: dict[str, str], **settings: str) -> AdapterQuestion:
    return AdapterQuestion(prompt="", environ=environ, settings=settings)


ENTRY: dict[str, Any] = {
    "command": sys.executable,
    "args": ["-P", "-m", "uwf_git", "mcp"],
    "env": PASSED,
}


def test_without_a_turn_or_switched_off_there_is_none() -> None:
    assert find_mcp_entry(turn({"UWF_REPO": "/r"})) is None
    assert find_mcp_entry(turn(TURN, mcp="off")) is None


def test_toml_reads_back() -> None:
    told = tomllib.loads(mcp_toml(turn(TURN)) or "")["mcp_servers"]["uwf"]

    assert told == {**ENTRY, "default_tools_approval_mode": "approve"}


def test_entry_starts_the_server() -> None:
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    ran = subprocess.run(
        [ENTRY["command"], *ENTRY["args"]], input=ping, capture_output=True, check=True
    )

    assert json.loads(ran.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "AWS_SESSION_TOKEN"])
def test_variables_of_a_provider_are_passed_on(name: str) -> None:
    assert allowed_environment({name: "x"}, more=PROVIDER_VARIABLES) == {name: "x"}


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "AZURE_CLIENT_SECRET", "CLAUDECODE", "NPM_TOKEN"])
def test_other_secrets_and_marks_are_not(name: str) -> None:
    assert allowed_environment({name: "x"}, more=PROVIDER_VARIABLES) == {}
