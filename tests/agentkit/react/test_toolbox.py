"""The toolbox: every call has an outcome."""

import os
from pathlib import Path
from typing import Any

import pytest
from agentkit.conftest import MakeContext

from uwf_git.agentkit.llm.messages import ToolCall, ToolResult
from uwf_git.agentkit.react.shell_tool import Surroundings
from uwf_git.agentkit.react.toolbox import Toolbox, build_toolbox
from uwf_git.agentkit.react.work_folder import open_work_folder
from uwf_git.errors import StoreDamaged


def toolbox(place: Path, context: MakeContext | None = None) -> Toolbox:
    return build_toolbox(
        open_work_folder(str(place)),
        thread=context,
        around=lambda: Surroundings({"PATH": os.environ["PATH"]}, None, 60),
    )


def run(box: Toolbox, name: str, arguments: dict[str, Any] | None) -> ToolResult:
    return box.run(ToolCall("c", name, arguments))


def test_all_tools_are_offered_and_run(tmp_path: Path, context: MakeContext) -> None:
    box = toolbox(tmp_path, context)
    calls: dict[str, dict[str, Any]] = {
        "write_file": {"path": "a", "content": "one"},
        "patch_file": {"path": "a", "old": "one", "new": "two"},
        "read_file": {"path": "a"},
        "list_files": {},
        "shell": {"command": "cat a"},
        "fetch_thread": {},
    }
    assert {tool.name for tool in box.tools} == calls.keys()
    outcomes = {name: run(box, name, arguments) for name, arguments in calls.items()}
    assert not [each for each in outcomes.values() if each.is_error]
    assert outcomes["read_file"] == ToolResult("c", "two")
    assert outcomes["shell"].text == "two\n[exit status 0]"


def test_without_a_shell_and_a_thread_there_are_file_tools_alone(tmp_path: Path) -> None:
    box = build_toolbox(open_work_folder(str(tmp_path)), thread=None, around=None)
    assert "shell" not in {tool.name for tool in box.tools}
    told = run(box, "shell", {"command": "id"})
    names = "read_file, write_file, patch_file, list_files"
    assert told == ToolResult("c", f"there is no tool 'shell', only {names}", is_error=True)


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("read_file", None, "the arguments of read_file are no JSON object"),
        ("read_file", {}, "read_file needs a text in 'path'"),
        ("read_file", {"path": "none"}, "none: no such file or directory"),
        ("read_file", {"path": "x" * 300}, f"{'x' * 300}: file name too long"),
        ("read_file", {"path": "../x"}, "../x is not in the work directory, {root}"),
        ("list_files", {"path": "none"}, "{root}/none: no such file or directory"),
    ],
)
def test_a_call_that_fails_tells_why(
    tmp_path: Path, name: str, arguments: dict[str, Any] | None, told: str
) -> None:
    outcome = run(toolbox(tmp_path), name, arguments)
    root = os.path.realpath(tmp_path)
    assert outcome == ToolResult("c", told.replace("{root}", root), is_error=True)


def test_a_store_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    def thread() -> Any:
        raise StoreDamaged("node X is damaged")

    box = build_toolbox(open_work_folder(str(tmp_path)), thread=thread, around=None)
    assert run(box, "fetch_thread", {}).text == "node X is damaged"


def test_what_changes_files_is_known(tmp_path: Path) -> None:
    box = toolbox(tmp_path)
    changing = [tool.name for tool in box.tools if box.changes(ToolCall("c", tool.name, {}))]
    assert changing == ["write_file", "patch_file"]
