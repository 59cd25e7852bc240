"""Agents of tasks: written as they are typed, and functions as agents."""

import pytest
from refusing import refuses

from uwf_git import AgentContext, TaskRuntime
from uwf_git.library.players import PlayerFunction
from uwf_git.library.starting import to_agent_words

INNER = """\
name: inner
root: {type: agent, agentId: digger}
"""


FLOW = """\
name: flow
root: {type: agent, agentId: asker, output: asked}
"""


@pytest.fixture
def seen() -> list[str]:
    return []


@pytest.fixture
def runtime(store: str, seen: list[str]) -> TaskRuntime:
    """Return a runtime with a function for each role, which notes its turns."""

    def player(role: str) -> PlayerFunction:
        def play(_context: AgentContext) -> dict[str, str]:
            seen.append(role)
            return {}

        return play

    roles = ("asker", "builder", "digger", "doc-writer")
    return TaskRuntime(store, players={role: player(role) for role in roles})


def test_agents_are_written_as_they_are_typed() -> None:
    assert to_agent_words(None) == ()
    assert to_agent_words("uwf-claude --fast") == ("uwf-claude --fast",)
    assert to_agent_words({"a": "one", "b": "two=2"}) == ("a=one", "b=two=2")
    assert to_agent_words({"a": {"command": "ü", "timeout": 1}}) == (
        'a={"command": "ü", "timeout": 1}',
    )
    with refuses("bad-settings", match="the agent of a cannot be written as JSON"):
        to_agent_words({"a": {"command": object()}})


def test_functions_play_roles_that_are_appended(runtime: TaskRuntime, seen: list[str]) -> None:
    runtime.put(INNER)
    task = runtime.start(FLOW)

    task.append_nodes([{"type": "agent", "agentId": "doc-writer", "input": "${state.asked}"}])
    runtime.append(task.task_id, [{"type": "workflow", "use": "inner"}])

    assert task.run().stopped == "end"
    assert seen == ["asker", "doc-writer", "digger"]
