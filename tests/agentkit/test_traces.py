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


@pytest.mark.parametrize("name", ADAPTERS)
def test_recorded_runs_are_traced_in_the_same_words(name: str, tmp_path: Path) -> None:
    for file in sorted((RECORDED / name).glob("*.json")):
        folder = tmp_path / file.stem
        folder.mkdir()
        ended = replay(folder, name, file.stem, schema=SCHEMA)
        try:
            answer = ADAPTERS[name].parse(ended)
        except AskFailed as failure:
            if failure.partial is None:
                continue
            answer = failure.partial
        assert find_odd(answer.trace) == [], file.stem
