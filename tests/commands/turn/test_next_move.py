import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from commands.flows import Split, split_checks
from commands.turn.test_turn import FLOW, GRAPH
from commands.turns import drive, script
from commands.world import DEMO, World, fails, says
from seal import START_MS
from store.small_packs import forget, loosen

from uwf_git.agents.files import BadFileBelow
from uwf_git.commands.background import AtRest, WaitRequest, wait_for_threads
from uwf_git.commands.cas import put_payload
from uwf_git.commands.inspect.context import get_context
from uwf_git.commands.inspect.graph import picture_thread
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.step.step_thread import list_leaves
from uwf_git.commands.turn.flow import find_turn_place
from uwf_git.commands.turn.next_move import Advice, NextMove, advise, decide_next, find_next_move
from uwf_git.commands.turn.turn import StepFiles, fill_paths
from uwf_git.errors import Refused, StoreDamaged
from uwf_git.model.names import ThreadId
from uwf_git.model.workflow import parse_workflow
from uwf_git.store.threads.history import get_role, get_workflow

STUCK = DEMO.replace("to: checker}", "to: checker, condition: meta.text = 'x'}")
UNFILLED = """\
name: demo
root: {type: agent, agentId: one, input: "${state.plan.text}"}
"""
OUTER = """\
name: outer
root: {type: workflow, use: demo}
"""


def advised(world: World, thread: ThreadId, **given: str) -> tuple[str, bool]:
    """Return the first command that is advised, without the thread, and whether it is usual."""
    snapshot = world.snapshot(thread)
    advice = advise(world.store, snapshot, find_next_move(snapshot), **given)
    return advice.text.split("`")[1].replace(f" {thread}", ""), advice.is_usual


def test_branch_that_is_held_is_told_once_no_other_can_go_on(world: World, split: Split) -> None:
    first, second = split.children
    world.pause(first)
    assert advised(world, split.thread) == ("uwf thread run", True)
    world.pause(second)

    advice = advise(world.store, split.tip, find_next_move(split.tip))

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
    snapshot = world.snapshot(world.stepped(source=STUCK))
    move = find_next_move(snapshot)
    assert move.problem is not None

    told = f"no transition from writer holds; {move.problem.hint}"
    assert advise(world.store, snapshot, move) == Advice(told)


@pytest.mark.parametrize("inner", [STUCK, UNFILLED])
def test_branch_that_is_stuck_is_corrected_in_a_fork_of_its_thread(
    world: World, inner: str
) -> None:
    world.put(inner)
    split = split_checks(world, OUTER)
    (branch,) = split.children
    with suppress(Refused):
        world.step(branch)
    problem = find_next_move(world.snapshot(branch)).problem
    assert problem is not None
    hint = str(problem.hint)

    assert "--workflow FILE" in hint
    assert f"amend {branch}" not in hint
    assert (f"`uwf thread poke {branch}`" in hint) == (inner == STUCK)
    assert f"`uwf thread fork {split.thread}`" in hint
    assert hint.index("put the corrected workflow") < hint.index("`uwf thread amend FORK")
    world.put(DEMO)
    corrected = world.put(OUTER).workflow
    assert world.amend(world.fork(split.thread), workflow=corrected).workflow == corrected


def test_fork_of_a_branch_that_has_branches_is_not_advised(world: World) -> None:
    world.put(UNFILLED)
    world.put(OUTER)
    split = split_checks(world, OUTER.replace("outer", "whole").replace("demo", "outer"))
    (branch,) = split.children
    world.step(branch)
    (stuck,) = list_leaves(world.store, split.tip)
    problem = find_next_move(world.snapshot(stuck)).problem

    assert problem is not None
    assert "`uwf thread fork OUTERMOST`" in str(problem.hint)


def test_way_to_no_role_of_a_workflow_that_was_put_by_hand_is_a_problem(world: World) -> None:
    ways = [{"from": "$START", "transitions": [{"to": "ghost", "condition": None}]}]
    graph = put_payload(world.store, world.caller, "Moderator", {"graph": ways}).hash
    rules = {"name": "demo", "description": "", "roles": {}, "moderator": {"$ref": graph}}
    thread = world.start(workflow=put_payload(world.store, world.caller, "Workflow", rules).hash)
    world.assert_whole()

    problem = find_next_move(world.snapshot(thread)).problem

    assert problem is not None
    assert problem.code == "unknown-position"
    assert "ghost, which is no role" in problem.message


def test_limit_that_is_reached_is_told_with_the_command_that_raises_it(world: World) -> None:
    thread = world.stepped()
    world.amend(thread, limits={"maxSteps": 1})

    assert advised(world, thread) == ("uwf thread amend --max-steps N", False)
    world.pause(thread)
    assert advised(world, thread)[0] == "uwf thread resume"
    assert "is at its limit" in told_of(world, thread, decided=True).text


@pytest.mark.parametrize("agent", ["human", "other"])
def test_limit_is_told_before_an_answer_or_a_try_that_it_refuses(agent: str, world: World) -> None:
    thread = world.stepped()
    world.amend(thread, f"checker={agent}")
    with suppress(TurnFailed):
        world.step(thread, fails())
    assert world.snapshot(thread).record.status == ("waiting" if agent == "human" else "failed")
    world.amend(thread, limits={"maxSteps": 1})

    assert advised(world, thread) == ("uwf thread amend --max-steps N", False)
    # It is the hint of a refused step, for which no move was decided.
    assert "is at its limit" in told_of(world, thread).text
    (held,) = show_thread(world.store, thread)["heldBy"]
    assert held["status"] == "limit"
    rests: list[AtRest] = []
    wait_for_threads(world.store, WaitRequest([thread]), on_rest=rests.append)
    assert rests[0].held == [held]


def test_limit_is_told_before_the_retry_of_a_branch(world: World, split: Split) -> None:
    for child in split.children:
        world.fail(child)
    assert "2 branches have failed" in told_of(world, split.thread).text
    world.amend(split.thread, limits={"maxSteps": 1})

    assert advised(world, split.thread) == ("uwf thread amend --max-steps N", False)


def test_after_a_pause_what_is_left_of_the_branches_is_told(world: World, split: Split) -> None:
    first, second = split.children
    world.step(first, command="human")
    world.pause(split.thread)
    resume = f"`uwf thread resume {split.thread}` lets it go on"
    assert told_of(world, split.thread).text == f"{resume}, then `uwf thread run {split.thread}`"
    world.resume(split.thread)
    world.step(second, command="human")
    world.pause(split.thread)

    told = told_of(world, split.thread).text

    assert told.startswith(f"{resume}; branch {first} waits for reviewer: `uwf thread answer")


def told_of(world: World, thread: ThreadId, *, decided: bool = False) -> Advice:
    snapshot = world.snapshot(thread)
    return advise(world.store, snapshot, find_next_move(snapshot) if decided else NextMove())


def test_a_limit_is_no_matter_when_all_branches_have_ended(world: World, split: Split) -> None:
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


def test_a_branch_whose_thread_is_not_here_goes_on_alone(world: World, split: Split) -> None:
    first = split.children[0]
    world.store.refs.delete(f"refs/threads/{split.thread}", seen=split.tip.commit.oid)

    assert advised(world, first) == ("uwf thread run", True)


# Whose turn it is: loops, END, history, and what a decision may cost.

ROUNDS = """\
name: rounds
roles:
  worker: {}
moderator:
  - {from: $START, to: worker}
  - {from: worker, to: worker, when: 'depth < 3'}
  - {from: worker, to: worker, when: '%s'}
  - {from: worker, to: $END}
"""


def after_steps(world: World, condition: str, *metas: object) -> str:
    """Return whose turn it is once the worker has handed in *metas*."""
    snapshot = world.snapshot(world.stepped(*map(says, metas), source=ROUNDS % condition))
    workflow = parse_workflow(snapshot.get_node(snapshot.record.workflow))
    return decide_next(snapshot, snapshot.get_present(), workflow).role


def test_condition_sees_what_the_specification_promises(world: World) -> None:
    for condition in [
        "depth = 3",
        "$count(history) = 2",
        "history[0].meta.n = 1",
        'history[-1].role = "worker" and history[-1].meta.n = 2',
        'meta.n = 3 and role = "worker"',
        "iteration = 3",
        'prompt = "Do it."',
        "startTime > 1700000000000",
        "$sum(history.meta.n) = 3",
        "meta.n > 9 or $sum([1, depth]) = 4",
    ]:
        assert after_steps(world, condition, {"n": 1}, {"n": 2}, {"n": 3}) == "worker"


PAIR = """\
name: pair
root: {type: sequential, nodes: [{type: agent, agentId: writer}, {type: agent, agentId: writer}]}
"""
TABLE = """\
name: table
roles: {team: {workflow: pair, outputSchema: true}, writer: {}}
moderator:
  - {from: $START, to: team}
  - {from: team, to: writer}
  - {from: writer, to: writer, when: %s}
  - {from: writer, to: $END}
"""
PLACES = """\
name: places
root: {type: sequential, nodes: [{type: workflow, use: pair}, {type: agent, agentId: writer}]}
"""


@pytest.mark.parametrize("condition", ["iteration < 3", '"$sum([iteration]) < 3"'])
def test_iteration_counts_no_steps_of_a_workflow_that_is_used(world: World, condition: str) -> None:
    world.put(PAIR)
    thread = world.begun(TABLE % condition)

    _, done = drive(world, thread, script())

    assert done == ["writer", "writer", "team: 1 completed", "writer", "writer", "writer"]
    world.assert_sound(thread)


# In a flow nothing asks for the number, and a role may play at several places.
@pytest.mark.parametrize(("source", "visit"), [(TABLE % "iteration < 3", 1), (PLACES, 3)])
def test_steps_of_a_workflow_that_is_used_are_no_turns_of_a_role_of_that_name(
    world: World, source: str, visit: int
) -> None:
    world.put(PAIR)
    thread = world.begun(source)
    while not world.snapshot(thread).record.depth:
        world.step(thread, script())

    assert get_context(world.store, thread)["visit"] == visit
    assert show_thread(world.store, thread)["currentIteration"] == 1
    picture = picture_thread(world.store, thread).thread
    assert picture is not None
    assert [mark.badge for mark in picture.marks.values()][-1] == "▶ next"


def damage(world: World, thread: ThreadId, *, step: int) -> None:
    """Overwrite the blob of an earlier step, as a bad disk would."""
    name = list(world.snapshot(thread).walk_chain())[::-1][step].hash
    loosen(world.store)
    git_dir = Path(world.store.path)
    found = [path for path in git_dir.rglob("objects/??/*") if _holds(path, name, world)]
    assert found
    for path in found:
        path.chmod(0o644)
        path.write_bytes(b"not what was written")
    forget(world.store)


def _holds(path: Path, name: str, world: World) -> bool:
    oid = path.parent.name + path.name
    blob = world.store.objects[oid.encode()]  # type: ignore[index]  # an ObjectID is bytes
    return blob.type_name == b"blob" and name.encode() in node_names(blob.as_raw_string())


def node_names(content: bytes) -> bytes:
    from uwf_git.store.nodes import identify_node  # noqa: PLC0415 (tests alone ask so)

    try:
        return identify_node(content).hash.encode()
    except ValueError:
        return b""


def test_damaged_head_is_not_stepped_over(world: World) -> None:
    thread = world.stepped(says({"n": 1}), source=ROUNDS % "meta.n < 9")
    damage(world, thread, step=1)
    world.reopen()

    with pytest.raises(StoreDamaged):
        world.step(thread, says({"n": 2}))


@pytest.mark.parametrize(
    "condition",
    [
        "history[-1].meta.n = 2 and history[-2].meta.n = 1",
        'history[-1].(role = "worker" and meta.n = 2)',
        "$count(history) = depth - 1",
    ],
)
def test_condition_that_looks_at_the_newest_steps_reads_no_others(
    world: World, condition: str
) -> None:
    thread = world.begun(ROUNDS % f"depth < 4 or ({condition})")
    for number in range(4):
        world.step(thread, says({"n": number}))
    damage(world, thread, step=1)
    world.reopen()

    assert world.step(thread, says({"n": 4})).depth == 5


def test_condition_that_asks_for_damaged_history_says_so(world: World) -> None:
    thread = world.begun(ROUNDS % "$max(history.meta.n) < 9")
    for number in range(3):
        world.step(thread, says({"n": number}))
    damage(world, thread, step=1)
    world.reopen()

    with pytest.raises(Exception, match="cannot be read") as caught:
        world.step(thread, says({"n": 3}))
    assert getattr(caught.value, "exit_status", None) == 5


def test_plain_conditions_of_a_shipped_workflow_need_neither_jsonata_nor_a_fork(
    tmp_path: Path,
) -> None:
    script = str(Path(__file__).with_name("plays_develop.py"))

    def run(*words: str) -> str:
        command = [sys.executable, script, str(tmp_path / "store.git"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert run(run().strip()) == "planner developer end\n[]\n"


@pytest.mark.parametrize(
    "condition", ['$error("no")', "$substring(1, 2, 3, 4)", "($f := function($x){$f($x)}; $f(1))"]
)
def test_condition_that_fails_is_an_error_and_never_false(condition: str, world: World) -> None:
    thread = world.stepped(says({}), source=ROUNDS % condition, times=3)

    with pytest.raises(Refused):
        world.step(thread, says({}))
    assert world.snapshot(thread).record.depth == 3


def fill(world: World, source: str, template: str) -> list[str]:
    """Fill a template of the role `writer` at its turn."""
    thread = world.begun(source.replace("FILES", "[a]"))
    world.patch(thread, {"a": {"b": "x"}, "n": 7, "up": "/etc"})
    snapshot = world.snapshot(thread)
    present = snapshot.get_present()
    workflow = get_workflow(snapshot, present.workflow)
    place = find_turn_place(snapshot, "0" if workflow.flow else None)
    role = get_role(snapshot, workflow.roles["writer"])
    return fill_paths(snapshot, present, place, (template,), of=role)


@pytest.mark.parametrize("source", [GRAPH, FLOW], ids=["graph", "flow"])
@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("${state.none}", "has no value"),
        ("${state.up}/passwd", "has to be relative"),
        ("${state.a.b}/../../y", "leads out"),
        ("${'.git'}/config", "is git's own"),
    ],
)
def test_value_that_is_no_path_of_the_work_is_refused(
    world: World, source: str, template: str, problem: str
) -> None:
    with pytest.raises(BadFileBelow, match=problem):
        fill(world, source, template)
