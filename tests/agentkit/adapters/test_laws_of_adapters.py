"""Laws of every adapter of a program, for any output of the program."""

import json
import tempfile
from pathlib import Path

import pytest
from agentkit.adapters.replay import SCHEMA, end, replay
from agentkit.adapters.test_programs import ADAPTERS
from hypothesis import given, settings
from hypothesis import strategies as st

from uwf_git.agentkit.programs.command import CommandAdapter, EndedProgram, LiveRecords
from uwf_git.agentkit.running import LiveLog
from uwf_git.agentkit.turn import AdapterAnswer, AskFailed

LINED = [ADAPTERS[name] for name in ("claude", "codex", "copilot", "gemini", "opencode", "qwen")]
TYPES = (
    "result", "text", "assistant", "assistant.message", "step_finish", "complete", "message",
    "error", "tool_call", "tool_use", "tool.execution_complete", "user", "model.call_failure",
    "item.completed", "turn.completed", "init",
)  # fmt: skip
KEYS = (
    "type", "subtype", "part", "data", "message", "content", "error", "result", "usage", "tokens",
    "tool_call", "is_error", "session_id", "exitCode", "structured_result", "reason", "state",
    "status", "item", "text", "structured_output", "permission_denials",
)  # fmt: skip

values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 2**40) | st.floats() | st.sampled_from(TYPES),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5)
    ),
    max_leaves=8,
)
records = st.builds(
    lambda kind, rest: json.dumps({**rest, "type": kind}),
    st.sampled_from(TYPES),
    st.dictionaries(st.sampled_from(KEYS), values, max_size=6),
)


def parse(adapter: CommandAdapter, ended: EndedProgram) -> AdapterAnswer | AskFailed:
    try:
        return adapter.parse(ended)
    except AskFailed as failure:
        return failure


@pytest.mark.parametrize("name", ADAPTERS)
@given(
    printed=st.lists(records | st.text(max_size=30), max_size=6),
    status=st.sampled_from([0, 1, 143]),
)
@settings(max_examples=40)
def test_whatever_it_prints_is_an_answer_or_none(
    name: str, printed: list[str], status: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stdout = "\n".join(printed)
        found = parse(ADAPTERS[name], end(Path(folder), stdout, status=status, schema=SCHEMA))

    if isinstance(found, AdapterAnswer):
        assert status == 0 or name == "qwen"
        assert found.text.strip() or found.structured is not None


@pytest.mark.parametrize("name", [name for name, each in ADAPTERS.items() if each.tell])
@given(printed=st.lists(records, max_size=6))
@settings(max_examples=40)
def test_whatever_it_prints_can_be_shown_as_it_comes(name: str, printed: list[str]) -> None:
    tell = ADAPTERS[name].tell
    assert tell is not None
    LiveRecords(tell, LiveLog(0)).add("\n".join(printed).encode() + b"\n")


@pytest.mark.parametrize("adapter", LINED, ids=lambda each: each.name)
def test_answer_is_shown_as_it_comes(
    adapter: CommandAdapter, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ended, live = replay(tmp_path, adapter.name, "text"), LiveLog()
    assert adapter.tell is not None
    shown = LiveRecords(adapter.tell, live)
    for place in range(0, len(ended.run.stdout), 7):
        shown.add(ended.run.stdout[place : place + 7])
    live.end()

    assert adapter.parse(ended).text.strip() in capfd.readouterr().err


@pytest.mark.parametrize("adapter", LINED, ids=lambda each: each.name)
def test_record_that_breaks_off_before_its_end_is_no_answer(
    adapter: CommandAdapter, tmp_path: Path
) -> None:
    ended = replay(tmp_path, adapter.name, "text")
    lines = ended.run.stdout.splitlines(keepends=True)
    for count in range(len(lines)):
        cut = EndedProgram(
            ended.run._replace(stdout=b"".join(lines[:count])), ended.question, ended.folder
        )

        assert isinstance(parse(adapter, cut), AskFailed)
