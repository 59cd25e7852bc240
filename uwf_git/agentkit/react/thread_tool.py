"""The thread tool: the model reads the task and the earlier steps, each whole, in parts."""

import json

from uwf_git.agentkit.context import AgentContext
from uwf_git.agentkit.llm.messages import ModelTool
from uwf_git.agentkit.react.arguments import ToolArguments
from uwf_git.agentkit.react.work_folder import ToolFailed

_LONGEST_PART = 30_000
_LONGEST_META = 500
_MOST_STEPS = 200

THREAD_TOOL = ModelTool(
    "fetch_thread",
    "Read the thread so far: the list of its steps, or with `step` one step whole.",
    {
        "type": "object",
        "properties": {
            "step": {"type": "integer", "description": "From 1 on; 0 is the task."},
            "offset": {"type": "integer", "description": "Characters to skip in a long one."},
        },
        "required": [],
        "additionalProperties": False,
    },
)


def fetch_thread(context: AgentContext, arguments: ToolArguments) -> str:
    """Return the list of steps, or one step; raise ToolFailed if there is no such step."""
    number = arguments.whole("step", -1, most=10**9)
    if number < 0:
        return _list_steps(context)
    if number > len(context.steps):
        raise ToolFailed(f"the thread has {len(context.steps)} steps, and no step {number}")
    return _part(_show_step(context, number), arguments.whole("offset", 0, most=10**9))


def _list_steps(context: AgentContext) -> str:
    steps = context.steps[-_MOST_STEPS:]
    first = len(context.steps) - len(steps) + 1
    lines = [
        f"{number} {step.role}, {len(step.content):,} characters of text, "
        f"meta {_json(step.meta)[:_LONGEST_META]}"
        for number, step in enumerate(steps, first)
    ]
    note = [f"[… the first {first - 1} steps; ask for them by number …]"] if first > 1 else []
    task = f"0 the task, {len(context.start.prompt):,} characters"
    thread = f"thread {context.thread_id}, workflow {context.workflow.name}"
    return "\n".join([thread, task, *note, *lines])


def _show_step(context: AgentContext, number: int) -> str:
    if number == 0:
        return context.start.prompt
    step = context.steps[number - 1]
    heading = f"step {number}, {step.role}, by {step.agent}"
    return f"{heading}\nmeta: {_json(step.meta)}\n\n{step.content}"


def _part(text: str, offset: int) -> str:
    part = text[offset : offset + _LONGEST_PART]
    end = offset + len(part)
    if end >= len(text):
        return part or f"(there are only {len(text):,} characters)"
    return f"{part}\n[… {len(text) - end:,} more characters; offset={end} gives them …]"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
