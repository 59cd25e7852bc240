from commands.flows import split_checks
from commands.inspect.test_branches import split_of
from commands.step.test_record_turn import CHECKS, script
from commands.world import DEMO, World

from uwf_git.commands.control.change_rules import AmendRequest, amend_thread
from uwf_git.commands.control.steer import pause_thread, resume_thread
from uwf_git.commands.turn.next_move import Advice, NextMove, advise, find_next_move
from uwf_git.model.names import ThreadId

TWO_EACH = """\
name: two
root:
  type: parallel
  nodes:
    - {type: sequential, nodes: [{type: agent, agentId: a}, {type: agent, agentId: b}]}
    - {type: agent, agentId: c}
"""
STUCK = DEMO.replace("- to: checker", "- {to: checker, condition: meta.text = 'x'}")


def test_role_that_cannot_be_decided_is_told_with_the_way_on(world: World) -> None:
    thread = world.begun(STUCK)
    world.step(thread)

    move = find_next_move(world.snapshot(thread))

    assert move.role is None
    assert move.problem is not None
    assert f"`uwf thread amend {thread} --workflow FILE`" in str(move.problem.hint)


def advised(world: World, thread: ThreadId, **given: str) -> tuple[str, bool]:
    """Return the first command that is advised, without the thread, and whether it is usual."""
    snapshot = world.snapshot(thread)
    advice = advise(world.store, snapshot, find_next_move(snapshot), **given)
    return advice.text.split("`")[1].replace(f" {thread}", ""), advice.is_usual


def test_branch_that_is_held_is_told_once_no_other_can_go_on(world: World) -> None:
    split = split_checks(world)
    first, second = split.children
    pause_thread(world.store, world.caller, first)
    assert advised(world, split.thread) == ("uwf thread run", True)
    pause_thread(world.store, world.caller, second)

    snapshot = split.tip
    advice = advise(world.store, snapshot, find_next_move(snapshot))

    assert f"`uwf thread resume {first}`" in advice.text
    assert "1 more waits" in advice.text


def test_problem_of_the_next_move_comes_with_its_own_hint(world: World) -> None:
    thread = world.begun(STUCK)
    world.step(thread)
    snapshot = world.snapshot(thread)
    move = find_next_move(snapshot)
    assert move.problem is not None

    assert advise(world.store, snapshot, move) == Advice(str(move.problem.hint))


def told_of(world: World, thread: ThreadId) -> Advice:
    return advise(world.store, world.snapshot(thread), NextMove())


def test_what_to_type_at_a_limit_is_an_amendment_of_the_root(world: World) -> None:
    thread = split_of(world, CHECKS + "config: {maxSteps: 3}\n")
    world.step(thread, script())

    told = told_of(world, thread)

    assert not told.is_usual
    assert "3 of 3 steps are taken" in told.text
    assert f"`uwf thread amend {thread} --max-steps N`" in told.text
    amend_thread(world.store, world.caller, AmendRequest(thread, limits={"maxSteps": 9}))
    assert told_of(world, thread).is_usual


def test_a_limit_is_no_matter_when_all_branches_have_ended(world: World) -> None:
    split = split_checks(world)
    amend_thread(world.store, world.caller, AmendRequest(split.thread, limits={"maxSteps": 4}))
    split.finish_branches()

    assert told_of(world, split.thread).is_usual


def test_what_to_type_in_a_branch_that_is_held_is_the_resume_of_its_thread(world: World) -> None:
    split = split_checks(world)
    pause_thread(world.store, world.caller, split.thread)

    told = told_of(world, split.children[0])

    assert not told.is_usual
    assert f"which is paused; `uwf thread resume {split.thread}`" in told.text
    resume_thread(world.store, world.caller, split.thread)
    assert told_of(world, split.children[0]).is_usual


def text_of(world: World, thread: ThreadId) -> str:
    snapshot = world.snapshot(thread)
    return advise(world.store, snapshot, find_next_move(snapshot)).text


def test_a_branch_goes_on_with_all_of_its_thread(world: World) -> None:
    thread = world.begun(TWO_EACH)
    for _ in range(2):  # the second one steps each branch
        world.step(thread)
    split = world.snapshot(thread).get_present().split
    assert split is not None
    first = split.children[0].thread
    run = f"`uwf thread run {thread}` drives this branch and all others of its thread"

    assert text_of(world, first) == (
        f"it is the turn of b: {run}, `uwf thread step {first}` takes one step"
    )
    world.step(first)
    assert text_of(world, first) == (f"no role is left: {run}, `uwf thread step {first}` ends it")


def test_a_branch_whose_thread_is_not_here_goes_on_alone(world: World) -> None:
    split = split_checks(world)
    first = split.children[0]
    world.store.refs.delete(f"refs/threads/{split.thread}", seen=split.tip.commit.oid)

    assert advised(world, first) == ("uwf thread run", True)
