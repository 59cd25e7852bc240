"""What no command records is found: another workflow for a branch, or while a thread is split."""

import pytest
from commands.flows import CHECKS, Split, split_checks, tell
from commands.world import World

from uwf_git.commands.control.answer import build_signalled, record_built
from uwf_git.commands.workflow.find import find_workflow
from uwf_git.model.event_folds import Cause
from uwf_git.model.names import ThreadId
from uwf_git.model.thread import Action, Amendment, build_signal
from uwf_git.store.threads.history import NewCommit, Snapshot

TALKATIVE = CHECKS.replace("agentId: tester", "agentId: tester, input: Loudly.")


def forge(
    world: World, thread: ThreadId, workflow: str | None, action: Action = "amend", **limits: int
) -> list[str]:
    """Record a change of rules as the commands would, but for their checks; return the findings."""

    def build(snapshot: Snapshot) -> NewCommit:
        found = None if workflow is None else find_workflow(world.store, workflow, cwd="/")
        amendment = Amendment(found and found.workflow.hash, {}, limits)
        signal = build_signal(action, timestamp=world.caller.now_ms(), amendment=amendment)
        cause = Cause(workflow_name=snapshot.record.workflow_name)
        nodes = () if found is None else tuple(found.closure)
        return build_signalled(snapshot, cause, signal=signal, nodes=nodes)

    done = record_built(world.store, world.caller, thread, build)
    assert done.commit is not None
    return tell(world.store, thread, done.commit)


@pytest.mark.parametrize("action", ["amend", "append"])
def test_another_workflow_of_a_branch_is_found(world: World, split: Split, action: Action) -> None:
    workflow = world.put(TALKATIVE).workflow

    told = forge(world, split.children[1], workflow, action)

    assert told == [f"amend gives a branch another workflow than its split: {workflow}"]


def test_another_workflow_while_split_is_found(world: World) -> None:
    told = forge(world, split_checks(world).thread, world.put(TALKATIVE).workflow)

    assert told == ["the thread has split, and gets another workflow"]


@pytest.mark.parametrize("is_split", [True, False])
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("agentId: tester", "agentId: tester, input: Loudly.", "differs at 0/1/1"),
        ("Several at once.", "All at once.", "has another description"),
        ("root:", "roles: {coder: {}}\nroot:", None),
    ],
)
def test_an_append_that_does_not_only_add_is_found(
    world: World, old: str, new: str, told: str | None, *, is_split: bool
) -> None:
    thread = split_checks(world).thread if is_split else world.begun(CHECKS)

    found = forge(world, thread, world.put(CHECKS.replace(old, new)).workflow, "append")

    said = f"append does more than add to the workflow: it {told}"
    assert found == ([] if told is None else [said])


def test_limits_of_a_branch_are_found(world: World, split: Split) -> None:
    assert forge(world, split.children[0], None, maxSteps=9) == [
        "amend gives limits to a branch: maxSteps"
    ]
    assert forge(world, split.thread, None, maxSteps=9) == []
