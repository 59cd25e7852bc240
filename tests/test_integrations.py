"""The plugin folders say what the program does; where their programs are installed, those judge."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from realcli.vendors import search_path

from uwf_git.commands.mcp.workflows import TOOLS

ROOT = Path(__file__).parents[1]
CHAT = ROOT / "integrations" / "chat"
WORDS = ["mcp", "--workflows"]


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_versions_are_that_of_the_package() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    server = read(ROOT / "integrations" / "server.json")
    files = (CHAT / ".claude-plugin" / "plugin.json", CHAT / "gemini-extension.json")
    found = [read(path)["version"] for path in files]
    found += [server["version"], *(package["version"] for package in server["packages"])]
    assert set(found) == {version}


def test_each_starts_the_server_of_a_chat() -> None:
    servers = [
        read(CHAT / name)["mcpServers"]["uwf"] for name in (".mcp.json", "gemini-extension.json")
    ]
    assert servers == [{"command": "uvx", "args": ["uwf", *WORDS]}] * 2
    (package,) = read(ROOT / "integrations" / "server.json")["packages"]
    given = [each.get("value") or each["name"] for each in package["packageArguments"]]
    assert given == WORDS
    page = (ROOT / "docs" / "chat.md").read_text()
    (vscode,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    (codex,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert json.loads(vscode)["servers"]["uwf"]["args"] == WORDS
    assert tomllib.loads(codex)["mcp_servers"]["uwf"]["args"] == WORDS


def test_pages_name_the_tools_that_there_are() -> None:
    there = {tool.name for tool in TOOLS}
    for path in (CHAT / "skills" / "uwf" / "SKILL.md", ROOT / "docs" / "chat.md"):
        named = re.findall(r"`([a-z]+_(?:workflows?|threads?))`", path.read_text())
        assert set(named) == there, path


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("claude", ["plugin", "validate", "--strict", str(CHAT)]),
        ("claude", ["plugin", "validate", "--strict", str(ROOT)]),
        ("gemini", ["extensions", "validate", str(CHAT)]),
    ],
)
def test_program_finds_its_plugin_valid(program: str, words: list[str], tmp_path: Path) -> None:
    found = shutil.which(program, path=search_path())
    if found is None:
        pytest.skip(f"there is no {program}; tests/realcli/install.sh gets it")
    told = subprocess.run(
        [found, *words],
        env={"HOME": str(tmp_path), "PATH": search_path()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout.decode() + told.stderr.decode()
