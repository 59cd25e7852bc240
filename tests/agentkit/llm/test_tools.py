"""The arguments that a model wrote for a tool."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agentkit.conftest import MakeContext, make_step
from hypothesis import given
from hypothesis import strategies as st
from refusing import raising

from uwf_git.agentkit.llm.messages import ToolCall, ToolResult
from uwf_git.agentkit.llm.tools import (
    LONGEST_OUTPUT,
    LONGEST_READ,
    Surroundings,
    ToolArguments,
    Toolbox,
    WorkFolder,
    build_toolbox,
    fetch_thread,
    list_files,
    open_work_folder,
    patch_file,
    read_file,
    run_shell,
)
from uwf_git.agentkit.turn import AskFailed
from uwf_git.errors import Refused, StoreDamaged


def arguments(**values: Any) -> ToolArguments:
    return ToolArguments("read_file", values)


@pytest.mark.parametrize(
    ("value", "number"),
    [(3, 3), (3.0, 3), ("3", 3), (None, 7), (500, 99), ("9" * 5000, 99), (0, 0)],
)
def test_a_number_is_read_however_it_is_written(value: Any, number: int) -> None:
    assert arguments(lines=value).whole("lines", 7, most=99) == number


@pytest.mark.parametrize("value", [-1, 2.5, "three", True, [], "-3", ""])
def test_value_that_is_no_whole_number_is_reported(value: Any) -> None:
    with pytest.raises(Refused, match="whole number in 'lines'"):
        arguments(lines=value).whole("lines", 7, most=99)


MADE_UP = Path(__file__).parent / "made_up" / "file_tools.json"


def run(tool: Callable[[WorkFolder, ToolArguments], str], place: Path, **values: Any) -> str:
    return tool(open_work_folder(str(place)), ToolArguments(tool.__name__, values))


def test_file_tools_do_and_tell_what_they_ever_did(
    tmp_path: Path, golden: Callable[[str, str], None]
) -> None:
    told: list[str] = []
    around = Surroundings({"PATH": os.environ["PATH"]}, None, 60)
    for number, (case, asked) in enumerate(json.loads(MADE_UP.read_text()).items()):
        place = tmp_path / str(number)
        place.mkdir()
        for name, content in asked["before"].items():
            (place / name).parent.mkdir(exist_ok=True)
            (place / name).write_bytes(content.encode("latin-1"))
        told.append(f"{case}\n")
        for name, values in asked["calls"]:
            box = build_toolbox(open_work_folder(str(place)), thread=None, around=lambda: around)
            outcome = call(box, name, values)
            text = json.dumps(outcome.text).replace(os.path.realpath(place), "PLACE")
            told.append(f"    {name} {json.dumps(values)}\n")
            told.append(f"        {'error: ' if outcome.is_error else ''}{text}\n")
        left = [path for path in sorted(place.rglob("*")) if path.is_file()]
        told += [f"    {path.relative_to(place)}: {path.read_bytes()!r}\n" for path in left]

    golden("file_tools.txt", "".join(told))


def test_a_long_file_comes_in_parts_that_can_be_put_together(tmp_path: Path) -> None:
    lines = [f"{n} {'x' * 90}\n" for n in range(2_000)]
    (tmp_path / "a").write_text("".join(lines))
    read: list[str] = []
    while len(read) < len(lines):
        part = run(read_file, tmp_path, path="a", first_line=len(read) + 1)
        assert len(part) <= LONGEST_READ + 100
        read += [line for line in part.splitlines(keepends=True) if not line.startswith("[…")]
    assert read == lines


def test_a_folder_that_cannot_be_read_does_not_hide_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scan(path: str) -> Any:
        if path.endswith("sealed"):
            raise PermissionError(13, "Permission denied", path)
        return scan_any(path)

    for path in ("sealed", "src/main"):
        (tmp_path / path).mkdir(parents=True)
    scan_any = os.scandir
    monkeypatch.setattr(os, "scandir", scan)

    assert run(list_files, tmp_path) == "sealed/\nsrc/\nsrc/main/"


def test_one_endless_line_is_cut(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x" * 200_000)
    told = run(read_file, tmp_path, path="a")
    assert len(told) < LONGEST_READ + 100
    assert told.endswith("[… line 1 is longer; first_line=2 skips the rest …]")


@given(st.text("ab\n", max_size=20), st.text("ab\n", min_size=1, max_size=3), st.text("ab\n"))
def test_a_patch_is_the_replacement_of_what_stands_once(source: str, old: str, new: str) -> None:
    place = Path.home()
    (place / "a").write_bytes(source.encode())
    if source.count(old) == 1:
        run(patch_file, place, path="a", old=old, new=new)
        assert (place / "a").read_bytes() == source.replace(old, new).encode()
    else:
        with pytest.raises(Refused):
            run(patch_file, place, path="a", old=old, new=new)


def test_a_file_that_is_too_large_to_be_written_is_not_patched(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"once" + b"-" * 10 * 2**20)
    with pytest.raises(Refused, match="a is larger than 10 MiB"):
        run(patch_file, tmp_path, path="a", old="once", new="")
    assert (tmp_path / "a").stat().st_size == 4 + 10 * 2**20


def fetch(context: MakeContext, *, steps: list[dict[str, Any]] | None = None, **values: Any) -> str:
    made = context() if steps is None else context(steps=steps)
    return fetch_thread(made, ToolArguments("fetch_thread", values))


def test_the_steps_are_listed_with_their_meta(context: MakeContext) -> None:
    lines = fetch(context).splitlines()
    assert lines[0] == "thread 01J7K9M2XNPQR5VWBCDF8G3H4T, workflow solve-issue"
    assert lines[1] == "0 the task, 42 characters"
    assert lines[2] == '1 planner, 21 characters of text, meta {"plan": ["read", "fix"]}'
    assert lines[3].startswith("2 developer, ")


def test_a_step_is_read_whole(context: MakeContext) -> None:
    told = fetch(context, step=1)
    assert told.startswith('step 1, planner, by uwf-hermes\nmeta: {"plan": ["read", "fix"]}\n\n')
    assert told.endswith("First read, then fix.")
    assert fetch(context, step=0) == "Fix the login bug described in issue #42.\n"


def test_a_missing_step_is_reported(context: MakeContext) -> None:
    with pytest.raises(Refused, match="the thread has 2 steps, and no step 3"):
        fetch(context, step=3)


def step(content: str) -> dict[str, Any]:
    return make_step(meta={"long": "x" * 9_000}, content=content)


def test_a_long_step_comes_in_parts(context: MakeContext) -> None:
    assert "offset=30000 gives them" in fetch(context, steps=[step("y" * 50_000)], step=1, offset=0)
    assert fetch(context, steps=[step("y" * 50_000)], step=1, offset=30_000).endswith("y")
    assert fetch(context, steps=[step("y")], step=1, offset=99_999).startswith("(there are only ")


def test_a_long_thread_names_its_newest_steps(context: MakeContext) -> None:
    lines = fetch(context, steps=[step("y")] * 300).splitlines()
    assert lines[2] == "[… the first 100 steps; ask for them by number …]"
    assert lines[3].startswith("101 planner, 1 characters")
    assert max(map(len, lines)) < 600


def shell(place: Path, command: Any, *, left_s: float = 60, **values: Any) -> str:
    around = Surroundings({"PATH": os.environ["PATH"], "SEEN": "yes"}, None, left_s)
    arguments = ToolArguments("shell", {"command": command, **values})
    return run_shell(open_work_folder(str(place)), arguments, around)


def test_a_command_runs_in_the_work_directory_with_what_it_may_see(tmp_path: Path) -> None:
    told = shell(tmp_path, 'pwd; echo "$SEEN-$HOME"; echo oops >&2; exit 3')
    assert told == f"{os.path.realpath(tmp_path)}\nyes-\noops\n[exit status 3]"


def test_a_long_output_loses_its_middle(tmp_path: Path) -> None:
    told = shell(tmp_path, "echo first; yes middle | head -n 20000; echo last")
    assert told.startswith("first\n")
    assert told.endswith("last\n[exit status 0]")
    assert "characters left out" in told
    assert len(told) < LONGEST_OUTPUT + 200


@pytest.mark.parametrize(
    ("given", "left_s", "told"), [({"timeout_s": 1}, 60, "1"), ({}, 0.2, "0.2")]
)
def test_a_command_that_takes_too_long_is_stopped_with_all_it_started(
    tmp_path: Path, given: dict[str, int], left_s: float, told: str
) -> None:
    command = "echo begun; setsid sleep 300 & sleep 300"
    assert shell(tmp_path, command, left_s=left_s, **given) == f"begun\n[stopped after {told} s]"


def test_a_daemon_does_not_stay_behind(tmp_path: Path) -> None:
    shell(tmp_path, "setsid sh -c 'echo $$ >pid; exec sleep 300' & while [ ! -s pid ]; do :; done")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("command", ["", " ", "a\0b"])
def test_no_command_is_refused(tmp_path: Path, command: str) -> None:
    with pytest.raises(Refused, match="shell needs a command"):
        shell(tmp_path, command)


def test_being_asked_to_end_ends_the_command_and_us(tmp_path: Path) -> None:
    begun = tmp_path / "begun"

    def ask() -> None:
        while not begun.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=ask)
    thread.start()
    with pytest.raises(AskFailed) as caught:
        shell(tmp_path, "touch begun; sleep 300")
    thread.join()
    assert caught.value.kind == "interrupted"


def call(box: Toolbox, name: str, arguments: dict[str, Any] | None) -> ToolResult:
    return box.run(ToolCall("c", name, arguments))


def test_a_store_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    thread = raising(StoreDamaged("node X is damaged"))
    box = build_toolbox(open_work_folder(str(tmp_path)), thread=thread, around=None)
    assert call(box, "fetch_thread", {}).text == "node X is damaged"


def test_an_unforeseen_error_of_a_tool_is_its_result(tmp_path: Path) -> None:
    thread = raising(RuntimeError("gone"))
    box = build_toolbox(open_work_folder(str(tmp_path)), thread=thread, around=None)
    assert call(box, "fetch_thread", {}).text == "fetch_thread failed: RuntimeError: gone"
