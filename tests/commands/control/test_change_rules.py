"""The transition by which rules change; the verbs that make it are tested in their own files."""

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest
from commands.flows import plays, split_checks
from commands.world import DEMO, World, says
from refusing import raising, refuses

from uwf_git.commands.control.change_rules import RuleChange, build_rule_change, steer_between_steps
from uwf_git.commands.turn.branches import WrongStatus
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.commands.workflow.build import put_workflow
from uwf_git.commands.workflow.find import find_workflow
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.history import NewCommit, Snapshot
from uwf_git.store.threads.local_files import ThreadBusy, lock_drive
from uwf_git.store.trust import untrust_agents


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


def test_pause_that_comes_between_is_gone_on_from(world: World, thread: ThreadId) -> None:
    workflow = find_workflow(world.store, "demo").workflow
    seen: list[str] = []

    def plan(snapshot: Snapshot) -> NewCommit:
        seen.append(snapshot.record.status)
        if len(seen) == 1:
            world.pause(thread)
        return build_rule_change(world.caller, snapshot, RuleChange("amend", workflow, workflow))[0]

    assert steer_between_steps(world.store, world.caller, thread, plan).status == "paused"
    assert seen == ["ready", "paused"]


def test_nothing_is_planned_while_an_agent_was_left_running(world: World, thread: ThreadId) -> None:
    run_dir = Path(world.store.local_path("run", thread, world.tip(thread)))
    run_dir.mkdir(parents=True)

    with open(f"{run_dir}.alive", "w") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        with refuses("agent-left-running"):
            steer_between_steps(world.store, world.caller, thread, raising(AssertionError("asked")))


def test_newest_step_is_taken_again_from_where_it_was(world: World) -> None:
    thread = world.stepped(says({"text": "one"}, "One.", state={"n": 1}, usage={"tokens": 5}))
    first = world.snapshot(thread)
    world.step(thread, says({"ok": True}, "Good.", state={"n": 2}, usage={"tokens": 7}))
    old = world.snapshot(thread).record.node

    poked = world.poke(thread, hint="it overlooked the tests")

    snapshot = world.snapshot(thread)
    present = snapshot.get_present()
    assert (poked.head, poked.status) == (first.record.node, "ready")
    assert (snapshot.record.depth, present.role, present.state) == (1, "writer", {"n": 1})
    assert present.visits == {"writer": 1}
    # What was spent stays spent.
    assert present.usage == {"tokens": 12}
    assert present.execution_ms == 3000
    assert snapshot.get_head_node().hash == first.record.node

    assert world.step(thread, says({"ok": False}, "Not good.")).role == "checker"
    assert world.snapshot(thread).get_head_node().payload["prev"] == {"$ref": first.record.node}
    # The old answer is still there, by its name.
    assert world.snapshot(thread).get_node(old).payload["meta"] == {"ok": True}
    world.assert_whole()


def test_one_step_is_taken_back_at_a_time(world: World) -> None:
    thread = world.stepped(times=2)
    world.poke(thread)
    world.fail(thread)
    before = world.tip(thread)

    with pytest.raises(WrongStatus, match="taken its newest step back already") as caught:
        world.poke(thread)

    assert "uwf thread step" in str(caught.value.hint)
    assert world.tip(thread) == before


def test_paused_thread_is_to_be_resumed_first(world: World) -> None:
    thread = world.stepped()
    world.pause(thread)

    with pytest.raises(WrongStatus) as caught:
        world.poke(thread)
    assert "uwf thread resume" in str(caught.value.hint)


def test_driven_thread_is_not_poked(world: World) -> None:
    thread = world.stepped()

    with lock_drive(world.store, thread, since_ms=1), pytest.raises(ThreadBusy):
        world.poke(thread)
    assert world.snapshot(thread).record.event == "step"


def test_step_is_not_taken_back_to_where_its_workflow_has_no_role(world: World) -> None:
    thread = world.stepped()
    world.step(thread, says({"ok": False}))
    without_writer = """\
name: rest
roles:
  checker: {description: d, systemPrompt: Check., outputSchema: {type: object}}
moderator:
  - {from: $START, to: checker}
  - {from: checker, to: $END}
"""
    put_workflow(world.store, world.caller, without_writer.encode())
    world.amend(thread, workflow="rest")
    before = world.tip(thread)

    with refuses("position-gone", match=f"thread {thread} cannot stand at writer"):
        world.poke(thread)

    assert world.tip(thread) == before


def test_poke_for_the_agent_of_another_role_takes_nothing_back(world: World) -> None:
    thread = world.stepped()
    before = world.tip(thread)

    with refuses("role-not-next", match=r"role checker is not next in .* turn of writer"):
        world.poke(thread, retake=Choice(("checker=mine",)))

    assert world.tip(thread) == before
    assert world.poke(thread, retake=Choice(("writer=mine",))).depth == 0


def _at_limit(world: World, thread: ThreadId) -> None:
    world.amend(thread, limits={"maxTokens": 1})


def _untrusted(world: World, _thread: ThreadId) -> None:
    untrust_agents(world.store, command="nobody")


def _unset(world: World, _thread: ThreadId) -> None:
    world.configure("uwf.retries", "many")


@pytest.mark.parametrize(
    ("spoil", "code", "retake"),
    [
        (_at_limit, "limit-reached", Choice()),
        (_untrusted, "agent-not-trusted", Choice()),
        (_unset, "bad-retry-setting", Choice()),
        (None, "not-a-directory", Choice(workdir="nowhere")),
    ],
)
def test_poke_whose_step_would_be_refused_takes_nothing_back(
    spoil: Callable[[World, ThreadId], None] | None, code: str, retake: Choice, world: World
) -> None:
    thread = world.stepped(says({"text": "one"}, usage={"inputTokens": 5}))
    if spoil is not None:
        spoil(world, thread)
    before = world.tip(thread)

    with refuses(code) as caught:
        world.poke(thread, retake=retake)

    assert world.tip(thread) == before
    # That would take the step after it.
    assert "`uwf thread step" not in (caught.value.hint or "")
    # Without the step nothing refuses it.
    assert world.poke(thread).depth == 0


def test_poke_asks_for_whoever_an_amend_lets_come_next(world: World) -> None:
    thread = world.stepped()
    changed = DEMO.replace("$START, to: writer", "$START, to: editor").replace(
        "moderator:", "  editor: {}\nmoderator:\n  - {from: editor, to: writer}"
    )
    world.amend(thread, "editor=untrusted", workflow=world.put(changed).workflow)
    untrust_agents(world.store, command="untrusted")
    before = world.tip(thread)

    with refuses("agent-not-trusted", match="role editor"):
        world.poke(thread, retake=Choice())

    assert world.tip(thread) == before
    world.poke(thread, retake=Choice(("editor=mine",)))


def test_the_step_that_a_poke_frees_is_below_the_limit_again(world: World) -> None:
    thread = world.stepped()
    split = split_checks(world)
    world.step(split.children[0], plays)
    for each, most in ((thread, 1), (split.thread, 2)):
        world.amend(each, limits={"maxSteps": most})

    for each in (thread, split.children[0]):
        world.poke(each, retake=Choice())
        assert world.step(each, says({"text": "x"})).depth == 1
