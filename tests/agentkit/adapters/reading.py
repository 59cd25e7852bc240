"""Read recorded and made-up runs with an adapter."""

from pathlib import Path
from typing import Any

import pytest
from agentkit.adapters.replay import RECORDED, end, lines, replay

from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AskFailed
from uwf_git.agentkit.programs.command_adapter import CommandAdapter
from uwf_git.agentkit.programs.failures import EndedProgram

NOWHERE = Path("/nowhere")


def list_situations(name: str) -> list[str]:
    """List the recordings of a program."""
    return sorted(path.stem for path in (RECORDED / name).glob("*.json"))


def read(adapter: CommandAdapter, situation: str, **question: Any) -> AdapterAnswer:
    """Return the answer that *adapter* reads from a recorded run."""
    return adapter.parse(replay(NOWHERE, adapter.name, situation, **question))


def read_failure(adapter: CommandAdapter, situation: str, **question: Any) -> AskFailed:
    """Return the failure that *adapter* reads from a recorded run."""
    with pytest.raises(AskFailed) as caught:
        read(adapter, situation, **question)
    return caught.value


def make_ended(stdout: Any, *, stderr: str = "", status: int = 0, **question: Any) -> EndedProgram:
    """Return the end of a program that printed *stdout*: a text, or one object a line."""
    text = stdout if isinstance(stdout, str) else lines(*stdout)
    return end(NOWHERE, text, status=status, stderr=stderr, **question)
