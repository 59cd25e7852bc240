from pathlib import Path

import pytest
from agentkit.adapters.replay import RECORDED, SCHEMA, replay
from agentkit.traces import find_odd

from uwf_git.agentkit.adapters import (
    aider,
    claude,
    codex,
    copilot,
    gemini,
    hermes,
    opencode,
    qwen,
)
from uwf_git.agentkit.extraction.adapter import AskFailed

ADAPTERS = {
    module.ADAPTER.name: module.ADAPTER
    for module in (aider, claude, codex, copilot, gemini, hermes, opencode, qwen)
}
SITUATIONS = [(file.parent.name, file.stem) for file in sorted(RECORDED.glob("*/*.json"))]


@pytest.mark.parametrize(("name", "situation"), SITUATIONS)
def test_recorded_runs_are_traced_in_the_same_words(
    name: str, situation: str, tmp_path: Path
) -> None:
    ended = replay(tmp_path, name, situation, schema=SCHEMA)
    try:
        answer = ADAPTERS[name].parse(ended)
    except AskFailed as failure:
        if failure.partial is None:
            return
        answer = failure.partial

    assert find_odd(answer.trace) == []


def test_every_recorded_program_has_an_adapter_here() -> None:
    assert {name for name, _situation in SITUATIONS} == ADAPTERS.keys()


@pytest.mark.parametrize(
    "event",
    [
        {"text": "no type"},
        {"type": "thought", "text": "hm"},
        {"type": "message"},
        {"type": "tool", "name": "ls", "arguments": {}, "output": "", "ok": True},
        {"type": "rung", "rung": "native", "why": "so"},
    ],
)
def test_event_in_other_words_is_odd(event: dict[str, object]) -> None:
    assert find_odd([event]) == [event]
