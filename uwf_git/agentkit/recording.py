"""What an agent records beside its answer: the prompt that it was given, and what it did.

Both become nodes of the step, with keys masked. Outside of a step nothing is written.
"""

import os
from collections.abc import Mapping
from typing import Any

from uwf_git.agentkit.step_files import open_trace, write_prompt
from uwf_git.engine.prompt import DEFAULT_BUDGET
from uwf_git.engine.prompt import build_prompt as assemble_prompt
from uwf_git.engine.turn_context import AgentContext


def build_prompt(context: AgentContext, *, budget: int = DEFAULT_BUDGET) -> str:
    """Build the prompt of a turn, and record it as the prompt of the step.

    It has the role, the task, the thread so far, and how to answer. *budget* limits task, thread
    and state, in characters; the role's own words and the answer format are never cut.
    """
    prompt = assemble_prompt(context, budget=budget)
    record_prompt(prompt)
    return prompt


def record_prompt(prompt: str) -> None:
    """Record *prompt* as the prompt of the step, for an agent that assembles its own."""
    write_prompt(os.environ.get("UWF_STEP_DIR") or None, prompt)


def trace(event: Mapping[str, Any]) -> None:
    """Add *event* to the trace of the step: an object with a ``type``, and what else there is.

    The ``usage`` of one of the type ``turn`` is shown by live views while the agent is at work.
    """
    with open_trace(os.environ.get("UWF_TRACE")) as note:
        note(event)
