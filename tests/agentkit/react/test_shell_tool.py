"""The shell tool: real commands."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from uwf_git.agentkit.extraction.adapter import AskFailed
from uwf_git.agentkit.react.arguments import ToolArguments
from uwf_git.agentkit.react.shell_tool import LONGEST_OUTPUT, Surroundings, run_shell
from uwf_git.agentkit.react.work_folder import ToolFailed, open_work_folder


def run(place: Path, command: Any, *, left_s: float = 60, **values: Any) -> str:
    around = Surroundings({"PATH": os.environ["PATH"], "SEEN": "yes"}, None, left_s)
    arguments = ToolArguments("shell", {"command": command, **values})
    return run_shell(open_work_folder(str(place)), arguments, around)


def test_a_command_runs_in_the_work_directory_with_what_it_may_see(tmp_path: Path) -> None:
    told = run(tmp_path, 'pwd; echo "$SEEN-$HOME"; echo oops >&2; exit 3')
    assert told == f"{os.path.realpath(tmp_path)}\nyes-\noops\n[exit status 3]"


def test_output_without_an_end_of_line_gets_one(tmp_path: Path) -> None:
    assert run(tmp_path, "printf x") == "x\n[exit status 0]"
    assert run(tmp_path, ":") == "[exit status 0]"


def test_a_command_has_no_input(tmp_path: Path) -> None:
    assert run(tmp_path, "cat") == "[exit status 0]"


def test_a_long_output_loses_its_middle(tmp_path: Path) -> None:
    told = run(tmp_path, "echo first; yes middle | head -n 20000; echo last")
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
    assert run(tmp_path, command, left_s=left_s, **given) == f"begun\n[stopped after {told} s]"


def test_a_daemon_does_not_stay_behind(tmp_path: Path) -> None:
    run(tmp_path, "setsid sh -c 'echo $$ >pid; exec sleep 300' & while [ ! -s pid ]; do :; done")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.parametrize("command", ["", " ", "a\0b"])
def test_no_command_is_refused(tmp_path: Path, command: str) -> None:
    with pytest.raises(ToolFailed, match="shell needs a command"):
        run(tmp_path, command)


def test_being_asked_to_end_ends_the_command_and_us(tmp_path: Path) -> None:
    begun = tmp_path / "begun"

    def ask() -> None:
        while not begun.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=ask)
    thread.start()
    with pytest.raises(AskFailed) as caught:
        run(tmp_path, "touch begun; sleep 300")
    thread.join()
    assert caught.value.kind == "interrupted"
