"""The programs that get the stop hook of a plan on their command line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from uwf_git.agentkit.adapters.claude import build_claude
from uwf_git.agentkit.adapters.codex import build as build_codex
from uwf_git.agentkit.adapters.events import build_copilot
from uwf_git.agentkit.programs.command import ProgramCall
from uwf_git.agentkit.turn import AdapterQuestion
from uwf_git.plan.hooks import HOOK_VARIABLE, StopHook, list_run_words

FOLDER = "/srv/my shop: one/.plugins/workflow"
SCRIPT = f"{FOLDER}/hooks/stop_hook"
Build = Callable[[AdapterQuestion, str], ProgramCall]


@pytest.mark.parametrize(
    ("tool", "build"),
    [("claude", build_claude), ("codex", build_codex), ("copilot", build_copilot)],
)
def test_turn_of_a_plan_has_the_hook(tool: str, build: Build, tmp_path: Path) -> None:
    def call(hook: str) -> list[str]:
        environ = {"UWF_THREAD_ID": "T", HOOK_VARIABLE: hook}
        return list(build(AdapterQuestion(prompt="x", environ=environ), str(tmp_path)).argv)

    words = list_run_words(tool, StopHook(SCRIPT))
    plain, hooked = call(""), call(f"T:{SCRIPT}")
    place = hooked.index(words[1]) - 1

    assert hooked[place : place + 2] == words
    assert hooked[:place] + hooked[place + 2 :] == plain
    # A thread that an agent of the plan has started is none of its turns.
    assert call(f"S:{SCRIPT}") == plain
