"""What a program may change in a task of containers while it runs; the rules are in commands."""

from collections.abc import Mapping
from typing import Any

import pytest

from uwf_git import AgentContext, Refused, TaskHandle, TaskRuntime
from uwf_git.library.players import PlayerFunction

FLOW = """\
name: flow
description: Codes, and checks at once.
initialState: {version: 1, kept: true}
root:
  type: sequential
  id: all
  nodes:
    - {type: agent, agentId: coder, output: code}
    - type: parallel
      id: checks
      nodes: [{type: agent, agentId: reviewer}, {type: agent, agentId: tester}]
    - {type: agent, agentId: closer}
"""

INNER = """\
name: inner
root: {type: agent, agentId: digger}
"""

ROLES = ("coder", "reviewer", "tester", "closer", "doc-writer", "digger")


@pytest.fixture
def seen() -> list[str]:
    """Return the turns that were played."""
    return []


@pytest.fixture
def runtime(store: str, seen: list[str]) -> TaskRuntime:
    def player(role: str) -> PlayerFunction:
        def play(context: AgentContext) -> Mapping[str, Any]:
            seen.append(role)
            return {role: context.state.get("version")}

        return play

    return TaskRuntime(store, players={role: player(role) for role in ROLES})


@pytest.fixture
def task(runtime: TaskRuntime) -> TaskHandle:
    return runtime.start(FLOW, state={"version": 2})


def test_flow_begins_without_a_prompt_and_with_more_in_its_state(task: TaskHandle) -> None:
    status = task.query()

    assert (status.prompt, status.state) == (
        "Codes, and checks at once.",
        {"version": 2, "kept": True},
    )


def test_nodes_go_after_the_root_or_into_a_container(
    runtime: TaskRuntime, task: TaskHandle, seen: list[str]
) -> None:
    writer = {"type": "agent", "agentId": "doc-writer", "input": "${state.code}", "output": "docs"}
    task.append_nodes([writer], "the API changed")
    task.append_nodes({"nodes": [{**writer, "output": "more"}]}, to="checks")
    runtime.append(task.task_id, [{**writer, "output": "last"}], to="all")
    runtime.put(INNER)
    runtime.append(task.task_id, [{"type": "workflow", "use": "inner"}])

    assert task.run(jobs=1).stopped == "end"
    assert sorted(seen[1:4]) == ["doc-writer", "reviewer", "tester"]
    assert [seen[0], *seen[4:]] == ["coder", "closer", "doc-writer", "doc-writer", "digger"]
    assert task.state["docs"] == {"doc-writer": 2}
    with pytest.raises(Refused, match="is not active"):
        task.append_nodes([writer])


def test_workflow_changes_where_what_was_done_stays(
    runtime: TaskRuntime, task: TaskHandle, seen: list[str]
) -> None:
    task.step()
    other = FLOW.replace("{type: agent, agentId: coder", "{type: agent, agentId: tester", 1)
    with pytest.raises(Refused, match="has something else on the way there"):
        task.amend(workflow=other)
    assert not runtime.put(FLOW).changed
    task.amend(workflow=FLOW.replace("agentId: closer", "agentId: doc-writer"))
    task.step()

    with pytest.raises(Refused, match="has split"):
        task.amend(workflow=FLOW)

    assert task.run().stopped == "end"
    assert seen[-1] == "doc-writer"
