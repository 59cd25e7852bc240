from pathlib import Path
from typing import Any

import pytest
from commands.draft.test_judge import GOOD, spoiled

from uwf_git import AgentContext, AgentFailed, PlayerResult, Refused, TaskRuntime, TaskStep
from uwf_git.library.players import PlayerFunction

BAD = spoiled("agentId: writer", "agentId: scribe")


def drafter(*drafts: str, questions: tuple[str, ...] = ()) -> PlayerFunction:
    """Return a player that hands over one draft after another."""

    def play(context: AgentContext) -> PlayerResult:
        meta: dict[str, Any] = {"name": "letter", "why": "simple", "questions": list(questions)}
        return PlayerResult(meta, content=drafts[context.visit - 1])

    return play


def test_draft_is_written_and_may_be_put(store: str, tmp_path: Path) -> None:
    runtime = TaskRuntime(store, players={"drafter": drafter(BAD, GOOD)}, cwd=tmp_path)
    steps: list[TaskStep] = []

    draft = runtime.draft("A letter to Ada", on_step=steps.append)

    assert (draft.name, draft.file, draft.why) == ("letter", GOOD, "simple")
    assert (draft.questions, draft.problems) == ((), ())
    assert draft.roles == ("writer", "checker") * 3
    assert [step.role for step in steps] == ["drafter", "validator", "drafter", "validator", None]
    assert runtime.task(draft.task_id).workflow_name == "draft"
    assert runtime.put(draft.file).name == "letter"


def test_failing_agent_and_no_agent_are_errors(store: str, tmp_path: Path) -> None:
    runtime = TaskRuntime(store, cwd=tmp_path)

    with pytest.raises(Refused, match="no agent is bound to role drafter"):
        runtime.draft("A letter")
    with pytest.raises(AgentFailed, match="drafter failed"):
        runtime.draft("A letter", agent="false")
    with pytest.raises(Refused, match="the prompt is empty"):
        runtime.draft("  ", agent="false")
