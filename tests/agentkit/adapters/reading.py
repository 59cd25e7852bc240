"""Made-up runs that no adapter of its own reads."""

from pathlib import Path
from typing import Any

from agentkit.adapters.replay import end, lines

from uwf_git.agentkit.programs.failures import EndedProgram

NOWHERE = Path("/nowhere")


def make_ended(stdout: Any, *, stderr: str = "", status: int = 0, **question: Any) -> EndedProgram:
    """Return the end of a program that printed *stdout*: a text, or one object a line."""
    text = stdout if isinstance(stdout, str) else lines(*stdout)
    return end(NOWHERE, text, status=status, stderr=stderr, **question)
