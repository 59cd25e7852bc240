"""Reading: what an adapter makes of recorded runs, and of made-up ones.

Owns: the short ways to say so. Knows nothing of: where records lie (replay.py).
"""

from pathlib import Path
from typing import Any

import pytest
from agentkit.adapters.replay import RECORDED, end, lines, replay

from uwf_git.agentkit.adapter import Answer, NoAnswer
from uwf_git.agentkit.command_adapter import CommandAdapter, Ended

NOWHERE = Path("/nowhere")


def list_situations(name: str) -> list[str]:
    """List what was recorded of a program."""
    return sorted(path.stem for path in (RECORDED / name).glob("*.json"))


def read(adapter: CommandAdapter, situation: str, **asked: Any) -> Answer:
    """Let *adapter* read what was recorded."""
    return adapter.parse(replay(NOWHERE, adapter.name, situation, **asked))


def read_failure(adapter: CommandAdapter, situation: str, **asked: Any) -> NoAnswer:
    """Let *adapter* read what was recorded of a failure."""
    with pytest.raises(NoAnswer) as caught:
        read(adapter, situation, **asked)
    return caught.value


def make_ended(stdout: Any, *, stderr: str = "", status: int = 0, **asked: Any) -> Ended:
    """Give the end of a program that printed *stdout*: a text, or objects, one a line."""
    text = stdout if isinstance(stdout, str) else lines(*stdout)
    return end(NOWHERE, text, status=status, stderr=stderr, **asked)
