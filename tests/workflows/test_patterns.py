import copy
from pathlib import Path

import pytest
from commands.conftest import world
from commands.flow_runs import drive
from commands.world import World, replied
from workflows.pattern_runs import PATTERNS, RUNS, PatternRun

from uwf_git.commands.control.answer import PersonAnswer, answer_thread, read_question
from uwf_git.commands.drive_thread import Driven
from uwf_git.commands.start import StartRequest, start_thread
from uwf_git.commands.turn.flow import fill_input
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.engine.flow_move import LoopExhausted
from uwf_git.model.names import ThreadId

__all__ = ["world"]

WORKFLOWS = Path(__file__).parents[2] / "workflows"


def begin(world: World, run: PatternRun) -> ThreadId:
    agents = [f"{role}=nobody" for role in run.script]
    request = StartRequest(run.pattern, "Do it.", tuple(agents))
    return start_thread(world.store, world.caller, request, thread=world.new_id()).thread


def go_on(world: World, thread: ThreadId, run: PatternRun) -> tuple[Driven, list[str]]:
    """Drive a thread by the script; a join is told by the name of its container."""
    script = copy.deepcopy(run.script)

    def play(turn: Turn) -> Played:
        turns = script[turn.role]
        said = turns.pop(0) if len(turns) > 1 else turns[0]
        return replied(said["meta"], said["content"])

    driven, steps = drive(world, thread, play)
    return driven, [step.partition(":")[0] for step in steps]


@pytest.mark.parametrize("run", RUNS, ids=[f"{run.pattern}-{len(run.steps)}" for run in RUNS])
def test_pattern_goes_the_way_that_the_answers_mean(run: PatternRun, world: World) -> None:
    thread = begin(world, run)

    driven, steps = go_on(world, thread, run)

    assert (driven.stopped, steps) == (run.stopped, run.steps)
    world.assert_sound(thread)


def the(pattern: str) -> PatternRun:
    return next(run for run in RUNS if run.pattern == pattern)


@pytest.mark.parametrize(
    ("votes", "decision"),
    [((True, True, True), "yes"), ((True, False, True), "yes"), ((True, False, False), "no")],
)
def test_majority_decides(votes: tuple[bool, ...], decision: str, world: World) -> None:
    run = the("vote")
    voters = dict(zip(("first", "second", "third"), votes, strict=True))
    told: list[str] = []

    def play(turn: Turn) -> Played:
        if turn.role in voters:
            return replied({"yes": voters[turn.role], "reason": f"because of {turn.role}"})
        assert turn.place is not None
        told.append(fill_input(turn.snapshot, turn.present, turn.place))
        return replied({})

    thread = begin(world, run)
    drive(world, thread, play)

    assert len(told) == 1
    assert f"The decision is {decision}." in told[0]
    assert all(f"because of {name}" in told[0] for name in voters)


def test_nothing_is_carried_out_before_a_person_approves(world: World) -> None:
    run = the("approve")
    thread = begin(world, run)
    go_on(world, thread, run)

    answer(world, thread, {"approved": False, "remarks": "too much"})
    driven, steps = go_on(world, thread, run)
    assert (driven.stopped, steps) == ("waiting", ["planner", "person"])
    answer(world, thread, {"approved": True})
    driven, steps = go_on(world, thread, run)

    assert (driven.stopped, steps) == ("end", ["executor"])


def answer(world: World, thread: ThreadId, meta: dict[str, object]) -> None:
    question = read_question(world.store, world.caller, thread)
    answer_thread(world.store, world.caller, question, PersonAnswer(meta))


def test_work_that_is_never_done_stops_for_a_person(world: World) -> None:
    never = PatternRun(
        "until-done",
        {"worker": [{"meta": {"notes": "x"}, "content": ""}]}
        | {"checker": [{"meta": {"ok": False}, "content": ""}]},
        [],
    )
    thread = begin(world, never)

    with pytest.raises(LoopExhausted, match="made 20 passes"):
        go_on(world, thread, never)

    assert world.snapshot(thread).get_present().depth == 40


@pytest.mark.parametrize("name", PATTERNS)
def test_pattern_is_short_and_tells_how_to_begin(name: str) -> None:
    text = (WORKFLOWS / f"{name}.yaml").read_text()

    assert text.startswith(f"# {name}: ")
    assert f"#   uwf run {name} -p " in text
    assert "# Use it where " in text
    assert len(text.splitlines()) <= 80
