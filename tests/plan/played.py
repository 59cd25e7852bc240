"""Threads with the roles of `plan-execute`, in a graph, played by functions."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from plan.stories import DONE, NO, PLANS, YES

from uwf_git import AgentContext, AgentFailed, TaskHandle, TaskRuntime

_ROLE = "{systemPrompt: x, outputSchema: {type: object}}"
WORKFLOW = f"""
name: plan-execute
description: The roles of plan-execute, in a graph
initialState: {{maxRetries: 2}}
roles:
  planner: {_ROLE}
  plan-verifier: {_ROLE}
  plans: {_ROLE}
  executor: {_ROLE}
  verifier: {_ROLE}
moderator:
  - {{from: $START, to: planner}}
  - {{from: planner, to: plan-verifier}}
  - {{from: plan-verifier, to: plans}}
  - {{from: plans, to: executor}}
  - {{from: executor, to: verifier}}
  - {{from: verifier, to: executor, condition: '$count(history[role = "executor"]) < 3'}}
  - {{from: verifier, to: $END}}
"""


class Script:
    """Plays all roles: each answer in turn; None is a crash."""

    def __init__(self, *answers: Mapping[str, Any] | None) -> None:
        self._answers: Iterator[Mapping[str, Any] | None] = iter(answers)

    def play(self, _context: AgentContext) -> Mapping[str, Any]:
        """Return the next answer."""
        answer = next(self._answers)
        if answer is None:
            raise AgentFailed("no key")
        return answer


_ROLES = ("planner", "plan-verifier", "plans", "executor", "verifier")


def start_task(
    store: Path | str, workdir: Path, *, create: bool = False, status_file: str = ""
) -> TaskHandle:
    """Start a thread whose executor crashes, is rejected, and then carries two plans out."""
    named = f"{{maxRetries: 2, hasPlans: true, statusFile: {status_file}}}"
    workflow = WORKFLOW.replace("{maxRetries: 2}", named) if status_file else WORKFLOW
    play = Script(DONE, YES, PLANS, None, DONE, NO, DONE, YES, DONE, YES).play
    runtime = TaskRuntime(store, create=create, players=dict.fromkeys(_ROLES, play), cwd=workdir)
    return runtime.start(workflow, "做一个网站")
