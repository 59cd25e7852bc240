"""The transition by which rules change; the verbs that make it are tested in their own files."""

import fcntl
from pathlib import Path

import pytest
from commands.world import World
from refusing import refuses

from uwf_git.commands.agent_run.runs import AgentLeftRunning
from uwf_git.commands.control.change_rules import RuleChange, build_rule_change, steer_between_steps
from uwf_git.commands.control.steer import pause_thread
from uwf_git.commands.workflow.find import find_workflow
from uwf_git.store.threads.record import NewCommit
from uwf_git.store.threads.snapshot import Snapshot


def test_thread_at_a_role_that_its_own_workflow_lost_can_still_be_amended(world: World) -> None:
    """A poke may go back to a point before a move: an unchanged rule is not refused."""
    thread = world.begun()
    workflow = find_workflow(world.store, "demo").workflow
    world.step(thread)
    snapshot = world.snapshot(thread)

    lost = workflow._replace(roles={"checker": workflow.roles["checker"]})
    _, amended = build_rule_change(world.caller, snapshot, RuleChange("amend", lost, lost))
    assert amended.status == "ready"
    other = lost._replace(hash=snapshot.record.node)
    with refuses("position-gone"):
        build_rule_change(world.caller, snapshot, RuleChange("amend", other, other))


def _never(_snapshot: Snapshot) -> NewCommit:
    raise AssertionError("asked although something is at work")


def test_pause_that_comes_between_is_gone_on_from(world: World) -> None:
    thread = world.begun()
    workflow = find_workflow(world.store, "demo").workflow
    seen: list[str] = []

    def plan(snapshot: Snapshot) -> NewCommit:
        seen.append(snapshot.record.status)
        if len(seen) == 1:
            pause_thread(world.store, world.caller, thread)
        return build_rule_change(world.caller, snapshot, RuleChange("amend", workflow, workflow))[0]

    assert steer_between_steps(world.store, world.caller, thread, plan).status == "paused"
    assert seen == ["ready", "paused"]


def test_nothing_is_planned_while_an_agent_was_left_running(world: World) -> None:
    thread = world.begun()
    run_dir = Path(world.store.local_path("run", thread, world.snapshot(thread).commit.oid))
    run_dir.mkdir(parents=True)

    with open(f"{run_dir}.alive", "w") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        with pytest.raises(AgentLeftRunning):
            steer_between_steps(world.store, world.caller, thread, _never)
