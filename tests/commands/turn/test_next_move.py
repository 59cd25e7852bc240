from commands.flows import split_checks
from commands.world import DEMO, World, fails
from seal import START_MS

from uwf_git.commands.cas import put_payload
from uwf_git.commands.turn.next_move import Advice, NextMove, advise, find_next_move
from uwf_git.commands.turn.turn import StepFiles
from uwf_git.model.names import ThreadId

STUCK = DEMO.replace("to: checker}", "to: checker, condition: meta.text = 'x'}")


def advised(world: World, thread: ThreadId, **given: str) -> tuple[str, bool]:
    """Return the first command that is advised, without the thread, and whether it is usual."""
    snapshot = world.snapshot(thread)
    advice = advise(world.store, snapshot, find_next_move(snapshot), **given)
    return advice.text.split("`")[1].replace(f" {thread}", ""), advice.is_usual


def test_branch_that_is_held_is_told_once_no_other_can_go_on(world: World) -> None:
    split = split_checks(world)
    first, second = split.children
    world.pause(first)
    assert advised(world, split.thread) == ("uwf thread run", True)
    world.pause(second)

    snapshot = split.tip
    advice = advise(world.store, snapshot, find_next_move(snapshot))

    assert f"`uwf thread resume {first}`" in advice.text
    assert "1 more waits" in advice.text


def test_branch_that_waits_for_a_limit_is_resumed_and_its_thread_driven(world: World) -> None:
    split = split_checks(world)
    limited = fails("slow down", left=StepFiles(kind="rate-limit", reset_at=START_MS * 2))
    for child in split.children:
        world.fail(child, limited)

    told = told_of(world, split.thread).text

    assert f"`uwf thread run {split.thread} --wait`" in told
    assert f"`uwf thread resume {split.children[0]}`" in told


def test_problem_of_the_next_move_is_told_with_its_own_hint(world: World) -> None:
    thread = world.begun(STUCK)
    world.step(thread)
    snapshot = world.snapshot(thread)
    move = find_next_move(snapshot)
    assert move.problem is not None

    told = f"no transition from writer holds; {move.problem.hint}"
    assert advise(world.store, snapshot, move) == Advice(told)


def test_way_to_no_role_of_a_workflow_that_was_put_by_hand_is_a_problem(world: World) -> None:
    ways = [{"from": "$START", "transitions": [{"to": "ghost", "condition": None}]}]
    graph = put_payload(world.store, world.caller, "Moderator", {"graph": ways}).hash
    rules = {"name": "demo", "description": "", "roles": {}, "moderator": {"$ref": graph}}
    thread = world.start(workflow=put_payload(world.store, world.caller, "Workflow", rules).hash)
    world.assert_whole()

    problem = find_next_move(world.snapshot(thread)).problem

    assert problem is not None
    assert (problem.code, "ghost, which is no role" in problem.message) == (
        "unknown-position",
        True,
    )


def test_limit_that_is_reached_is_told_with_the_command_that_raises_it(world: World) -> None:
    thread = world.begun()
    world.step(thread)
    world.amend(thread, limits={"maxSteps": 1})

    assert advised(world, thread) == ("uwf thread amend --max-steps N", False)


def told_of(world: World, thread: ThreadId) -> Advice:
    return advise(world.store, world.snapshot(thread), NextMove())


def test_a_limit_is_no_matter_when_all_branches_have_ended(world: World) -> None:
    split = split_checks(world)
    world.amend(split.thread, limits={"maxSteps": 4})
    split.finish_branches()

    assert told_of(world, split.thread).is_usual


def test_what_to_type_in_a_branch_that_is_held_is_the_resume_of_its_thread(world: World) -> None:
    split = split_checks(world)
    world.pause(split.thread)

    told = told_of(world, split.children[0])

    assert not told.is_usual
    assert f"which is paused; `uwf thread resume {split.thread}`" in told.text
    world.resume(split.thread)
    assert told_of(world, split.children[0]).is_usual


def test_a_branch_whose_thread_is_not_here_goes_on_alone(world: World) -> None:
    split = split_checks(world)
    first = split.children[0]
    world.store.refs.delete(f"refs/threads/{split.thread}", seen=split.tip.commit.oid)

    assert advised(world, first) == ("uwf thread run", True)
