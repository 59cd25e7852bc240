"""Tasks whose workflow is made of containers."""

import threading
from collections.abc import Mapping
from typing import Any

import pytest
from commands.step.test_record_turn import CHECKS
from library.crowd import Crowd

from uwf_git import AgentContext, AgentFailed, TaskHandle, TaskRuntime
from uwf_git.library.arguments import WrongArgument
from uwf_git.library.players import PlayerFunction

REASON = "too many errors; the direction may be wrong"

WATCHED = """\
name: watched
description: A loop that goes wrong.
initialState: {errorCount: 0}
config: {stateSnapshot: true}
root:
  type: loop
  condition: state.errorCount >= 0
  maxIterations: 50
  nodes: [{type: agent, agentId: coder}]
"""


def say(**answers: Any) -> dict[str, PlayerFunction]:
    """Return players that always answer the same, for the roles of `checks`."""

    def player(role: str) -> PlayerFunction:
        return lambda _context: answers.get(role, {})

    return {role: player(role) for role in ("coder", "reviewer", "builder", "tester", "closer")}


def fail(_context: AgentContext) -> Mapping[str, Any]:
    raise ValueError("no luck")


def begin(store: str, source: str = CHECKS, **players: PlayerFunction) -> TaskHandle:
    return TaskRuntime(store, players={**say(), **players}).start(source, "Do it.")


JUDGED = """\
name: judged
description: Work that is verified, once.
root:
  type: sequential
  nodes: [{type: agent, agentId: coder, retries: 0, verifiedBy: {agentId: judge, when: meta.ok}}]
"""


def test_rejection_of_the_work_is_the_error_of_the_task(store: str) -> None:
    task = begin(store, JUDGED, judge=lambda _context: {"ok": False, "issues": ["no tests"]})
    assert (task.run().status, task.error) == ("failed", "judge rejected it: no tests")
    task.retry()
    assert task.error == "judge rejected it: no tests"
    task.step()
    assert task.error is None


def test_branches_are_played_and_joined(store: str) -> None:
    Crowd(store, branches=5, steps=3).check(jobs=3)


def test_watcher_interrupts_with_a_reason(store: str) -> None:
    has_decided = threading.Event()

    def code(context: AgentContext) -> Mapping[str, Any]:
        if context.iteration == 7:
            assert has_decided.wait(30)
        return {"errorCount": context.state["errorCount"] + 3}

    task = begin(store, WATCHED, coder=code)

    def watch() -> None:
        for event in task.events(follow=True):
            payload = event.payload
            if (
                event.type == "workflow:progress"
                and payload.get("iteration", 0) > 3
                and payload["state"]["errorCount"] > 10
            ):
                has_decided.set()
                task.interrupt(REASON)
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    ran = task.run()
    watcher.join(30)

    assert (ran.stopped, ran.status) == ("paused", "paused")
    status = task.query()
    assert status.document["reason"] == REASON
    assert status.current_node == "coder"
    assert status.current_iteration is not None
    assert 3 < status.current_iteration < 50
    assert status.state["errorCount"] == 3 * status.depth


def test_split_task_says_what_its_branches_do(store: str) -> None:
    task = begin(store, reviewer=fail)
    task.step()
    task.step()
    ran = task.run(jobs=1)
    assert (ran.stopped, ran.status) == ("failed", "split")
    assert isinstance(ran.failure, AgentFailed)

    status = task.query()

    assert (status.status, status.current_node, status.current_iteration) == ("split", "checks", 1)
    first, second = status.branches
    assert (first.label, first.status, first.error) == ("reviewer", "failed", "ValueError: no luck")
    assert (second.number, second.label) == (1, "testing")
    assert status.held_by == (f"{first.task_id} failed: ValueError: no luck",)
    inside = TaskRuntime(store).query(first.task_id)
    assert (inside.parent_task_id, inside.is_branch, inside.task_depth) == (task.task_id, True, 1)


def test_step_of_a_split_task_raises_what_failed_in_a_branch(store: str) -> None:
    task = begin(store, reviewer=fail)
    task.step()
    task.step()

    with pytest.raises(AgentFailed, match="no luck"):
        task.step(jobs=1)

    assert [(each.status, each.depth) for each in task.query().branches] == [
        ("failed", 0),
        ("ready", 1),
    ]


def test_max_steps_counts_those_of_branches(store: str) -> None:
    task = begin(store)

    ran = task.run(max_steps=3, jobs=1)

    assert (ran.stopped, ran.steps, ran.status) == ("max-steps", 3, "split")
    assert task.run().status == "completed"


def test_jobs_is_a_number(store: str) -> None:
    with pytest.raises(WrongArgument):
        begin(store).run(jobs=0)
