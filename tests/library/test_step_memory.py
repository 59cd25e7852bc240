"""What functions have read of a task is read once, and is always what the task has now."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from uwf_git import AgentContext, TaskRuntime
from uwf_git.engine.lazy_list import lazy_list
from uwf_git.engine.turn_context import Step
from uwf_git.library import players
from uwf_git.library.players import StepMemory

WORKFLOW = """\
name: count
roles:
  writer: {description: Writes., outputSchema: {type: object}}
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: writer, when: depth < 9}
  - {from: writer, to: $END}
"""


class Reader:
    """A player that notes all that it sees of its task's steps."""

    def __init__(self) -> None:
        self.seen: list[list[int]] = []

    def play(self, context: AgentContext) -> dict[str, object]:
        self.seen.append([step.meta["number"] for step in context.steps])
        return {"number": len(self.seen)}


def test_each_step_is_read_once_and_the_newest_is_compared(tmp_path: Path) -> None:
    contexts: list[AgentContext] = []

    def keep(context: AgentContext) -> dict[str, object]:
        contexts.append(context)
        return {"number": len(contexts)}

    runtime = TaskRuntime(tmp_path / "s.git", create=True, players={"writer": keep})
    runtime.start(WORKFLOW, "Go.").run()
    memory, read = StepMemory(), list[int]()

    for context in contexts:
        steps = context.steps

        def note(place: int, steps: Sequence[Step] = steps) -> Step:
            read.append(place)
            return steps[place]

        seen = memory.extend(replace(context, steps=lazy_list(len(steps), note))).steps
        assert [step.meta["number"] for step in seen] == list(range(1, len(steps) + 1))

    assert read == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7]


def test_calls_that_take_a_step_each_see_all_of_it(tmp_path: Path) -> None:
    reader = Reader()
    runtime = TaskRuntime(tmp_path / "s.git", create=True, players={"writer": reader.play})
    task = runtime.start(WORKFLOW, "Go.")

    for _step in range(9):
        task.step()

    assert reader.seen == [list(range(1, turn)) for turn in range(1, 10)]


def test_a_step_that_was_taken_back_is_not_remembered(tmp_path: Path) -> None:
    reader = Reader()
    runtime = TaskRuntime(tmp_path / "s.git", create=True, players={"writer": reader.play})
    task = runtime.start(WORKFLOW, "Go.")
    for _step in range(3):
        task.step()

    task.poke()
    task.step()
    task.step()

    assert reader.seen[-2:] == [[1, 2], [1, 2, 4]]


def test_what_is_remembered_is_shared_and_cannot_be_changed(tmp_path: Path) -> None:
    problems: list[str] = []

    def spoil(context: AgentContext) -> dict[str, object]:
        for step in context.steps:
            try:
                step.meta["number"] = 0
            except TypeError as error:
                problems.append(str(error))
        return {"number": len(context.steps)}

    runtime = TaskRuntime(tmp_path / "s.git", create=True, players={"writer": spoil})
    runtime.start(WORKFLOW, "Go.").run(max_steps=3)

    assert problems == ["this dict is shared and cannot be changed"] * 3


def test_more_than_the_most_is_forgotten_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(players, "_STEP_BYTES", players.MOST_BYTES // 3)
    reader = Reader()
    runtime = TaskRuntime(tmp_path / "s.git", create=True, players={"writer": reader.play})

    runtime.start(WORKFLOW, "Go.").run()

    assert reader.seen[-1] == list(range(1, 9))
