import json
import shlex
import subprocess
import sys
import tomllib

from uwf_git.agentkit.programs.mcp_config import (
    find_mcp_entry,
    mcp_command_line,
    mcp_entry,
    mcp_servers_json,
    mcp_toml,
)

TURN = {
    "UWF_REPO": '/srv/a "b"\\c.git',
    "UWF_THREAD_ID": "T",
    "UWF_ROLE": "counter",
    "UWF_STEP_DIR": "/srv/\x7fstep",
    "UWF_HEAD": "",
    "OPENAI_API_KEY": "k",
}
PASSED = {name: TURN[name] for name in ("UWF_REPO", "UWF_THREAD_ID", "UWF_ROLE", "UWF_STEP_DIR")}


def test_entry_names_the_turn_and_nothing_else() -> None:
    assert mcp_entry(TURN) == {
        "command": sys.executable,
        "args": ["-P", "-m", "uwf_git", "mcp"],
        "env": PASSED,
    }


def test_without_a_turn_there_is_none() -> None:
    assert find_mcp_entry({"UWF_REPO": "/r"}, {}) is None
    assert find_mcp_entry(TURN, {}) == mcp_entry(TURN)


def test_it_can_be_switched_off() -> None:
    assert find_mcp_entry(TURN, {"mcp": "off"}) is None
    assert find_mcp_entry(TURN, {"mcp": "on"}) == mcp_entry(TURN)


def test_json_is_what_programs_take() -> None:
    told = json.loads(mcp_servers_json(mcp_entry(TURN), alwaysLoad=True) or "")

    assert told == {"mcpServers": {"uwf": {**mcp_entry(TURN), "alwaysLoad": True}}}


def test_without_an_entry_there_is_nothing_to_say() -> None:
    assert (mcp_servers_json(None), mcp_toml(None), mcp_command_line(None)) == (None, None, None)


def test_toml_reads_back() -> None:
    told = tomllib.loads(mcp_toml(mcp_entry(TURN)) or "")["mcp_servers"]["uwf"]

    assert told == {**mcp_entry(TURN), "default_tools_approval_mode": "approve"}


def test_command_line_holds_nothing_of_one_turn() -> None:
    entry = mcp_entry(TURN)

    told = mcp_command_line(mcp_entry({**TURN, "PYTHONPATH": "/a b:/c"}))

    assert shlex.split(told or "") == ["PYTHONPATH=/a b:/c", entry["command"], *entry["args"]]
    assert mcp_command_line(entry) == mcp_command_line(mcp_entry({"UWF_REPO": "/other"}))


def test_entry_starts_the_server() -> None:
    entry = mcp_entry({})
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    ran = subprocess.run(
        [entry["command"], *entry["args"]], input=ping, capture_output=True, check=True
    )

    assert json.loads(ran.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}
