"""The thread, as a model reads it."""

from typing import Any

import pytest
from agentkit.conftest import MakeContext

from uwf_git.agentkit.react.arguments import ToolArguments
from uwf_git.agentkit.react.thread_tool import fetch_thread
from uwf_git.agentkit.react.work_folder import ToolFailed


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
    with pytest.raises(ToolFailed, match="the thread has 2 steps, and no step 3"):
        fetch(context, step=3)


def step(content: str) -> dict[str, Any]:
    return {
        "hash": "7BQST3VW9F2MA",
        "role": "planner",
        "meta": {"long": "x" * 9_000},
        "content": content,
        "agent": "uwf-mock",
        "timestamp": 1,
    }


def test_a_long_step_comes_in_parts(context: MakeContext) -> None:
    whole = fetch(context, steps=[step("y" * 50_000)], step=1, offset=0)
    assert "offset=30000 gives them" in whole
    rest = fetch(context, steps=[step("y" * 50_000)], step=1, offset=30_000)
    assert rest.endswith("y")
    assert fetch(context, steps=[step("y")], step=1, offset=99_999).startswith("(there are only ")


def test_a_long_thread_names_its_newest_steps(context: MakeContext) -> None:
    lines = fetch(context, steps=[step("y")] * 300).splitlines()
    assert lines[2] == "[… the first 100 steps; ask for them by number …]"
    assert lines[3].startswith("101 planner, 1 characters")
    assert max(map(len, lines)) < 600
