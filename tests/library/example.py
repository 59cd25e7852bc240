"""Two functions write and edit a line, until it is short enough."""

# ruff: noqa: T201 (an example shows what it gets)

import sys
from typing import Any

from uwf_git import AgentContext, Refused, TaskRuntime

DRAFT = """
name: draft
description: Write a line until it is short.
roles:
  writer:
    description: Writes one line.
    systemPrompt: Write one line about what you are asked.
    outputSchema: {type: object, properties: {line: {type: string}}, required: [line]}
  editor:
    description: Says whether the line may stay.
    systemPrompt: A line has at most 20 characters.
    outputSchema: {type: object, properties: {short: {type: boolean}}, required: [short]}
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: editor}
  - {from: editor, to: writer, condition: meta.short = false}
  - {from: editor, to: $END}
"""


def write(context: AgentContext) -> dict[str, Any]:
    """Say it in fewer words at every turn."""
    return {"line": " ".join(context.start.prompt.split()[: 6 - context.visit])}


def edit(context: AgentContext) -> dict[str, Any]:
    """Look at the newest line."""
    return {"short": len(context.steps[-1].meta["line"]) <= 20}


runtime = TaskRuntime(sys.argv[1], create=True, players={"writer": write, "editor": edit})
task = runtime.start(DRAFT, "one two three four five six", limits={"max_steps": 20})
task.update_state({"asked_by": "example"}, "so that it is known")

run = task.run(on_step=lambda step: print(step.depth, step.role, step.said))
print(run.stopped, run.steps, task.status, dict(task.state))

for event in task.events():
    if event.type.startswith("workflow:"):
        print(event.type, event.payload.get("nodeName"))

try:
    task.resume()
except Refused as error:
    print(error.code)
