import json
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from uwf_git.agentkit.extraction.adapter import AdapterQuestion
from uwf_git.agentkit.programs.playing import (
    PROVIDER_VARIABLES,
    clean_argument,
    find_mcp_entry,
    find_object_schema,
    find_store_pattern,
    is_below,
    list_deciding_files,
    mcp_command_line,
    mcp_servers_json,
    mcp_toml,
    option,
    setting_options,
    write_file,
)
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


@pytest.mark.parametrize(
    ("store", "pattern"),
    [
        ("/w/store.git", "/w/store.git"),
        ("/w/a b(*)/x.git", "/w/a?b???/x.git"),
        ("/w/project/.git", None),
        (None, None),
    ],
)
def test_store_becomes_a_pattern(store: str | None, pattern: str | None) -> None:
    assert find_store_pattern({"UWF_REPO": store} if store else {}) == pattern


def test_an_option_without_a_value_is_left_out() -> None:
    assert option("--model", "m") == ("--model", "m")
    assert (option("--model", None), option("--model", "")) == ((), ())


def test_settings_become_options_in_the_order_of_the_keys() -> None:
    question = AdapterQuestion(prompt="", settings={"model": "m", "provider": "p", "env": "X"})
    assert setting_options(question, ("provider", "model", "effort")) == [
        *("--provider", "p"),
        *("--model", "m"),
    ]


def test_schema_is_of_the_whole_answer_unless_words_are_wanted() -> None:
    schema = find_object_schema(AdapterQuestion(prompt="", schema={"type": "object"}))
    assert schema is not None
    assert schema["required"] == ["content", "meta"]
    words = AdapterQuestion(prompt="", schema={"type": "object"}, settings={"schema": "words"})
    assert find_object_schema(words) is None
    assert find_object_schema(AdapterQuestion(prompt="")) is None


def test_file_is_written_whatever_the_text(tmp_path: Path) -> None:
    path = write_file(str(tmp_path), "prompt.md", "Tú \ud83d\n")
    assert path == str(tmp_path / "prompt.md")
    assert (tmp_path / "prompt.md").read_bytes() == b"T\xc3\xba ?\n"


def test_argument_holds_no_zero_byte_and_no_half_surrogate() -> None:
    assert clean_argument("a\0b\ud83d") == "ab?"


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


def test_entry_names_the_turn_and_nothing_else() -> None:
    assert find_mcp_entry(turn(TURN)) == find_mcp_entry(turn(TURN, mcp="on")) == ENTRY


def test_without_a_turn_or_switched_off_there_is_none() -> None:
    assert find_mcp_entry(turn({"UWF_REPO": "/r"})) is None
    assert find_mcp_entry(turn(TURN, mcp="off")) is None


def test_json_is_what_programs_take() -> None:
    told = json.loads(mcp_servers_json(turn(TURN), alwaysLoad=True) or "")

    assert told == {"mcpServers": {"uwf": {**ENTRY, "alwaysLoad": True}}}


def test_without_an_entry_there_is_nothing_to_say() -> None:
    nowhere = turn({})

    told = (mcp_servers_json(nowhere), mcp_toml(nowhere), mcp_command_line(nowhere))
    assert told == (None, None, None)


def test_toml_reads_back() -> None:
    told = tomllib.loads(mcp_toml(turn(TURN)) or "")["mcp_servers"]["uwf"]

    assert told == {**ENTRY, "default_tools_approval_mode": "approve"}


def test_command_line_holds_nothing_of_one_turn() -> None:
    told = mcp_command_line(turn({**TURN, "PYTHONPATH": "/a b:/c"}))

    words = ["PYTHONPATH=/a b:/c", ENTRY["command"], *ENTRY["args"]]
    assert shlex.split(told or "") == words
    assert mcp_command_line(turn(TURN)) == mcp_command_line(turn({**TURN, "UWF_REPO": "/o"}))


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
