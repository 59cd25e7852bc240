"""Work that another agent verifies: tries, verdicts, and what the next try is told."""

from pathlib import Path

import pytest
from commands.flows import tell
from commands.turns import BAD, GOOD, PLANS, drive, in_order, log, script, take
from commands.world import World, fails, replied

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.commit_events import EventOptions, EventReader
from uwf_git.commands.control.answer import PersonAnswer
from uwf_git.commands.inspect.context import get_context
from uwf_git.commands.step.record_turn import TriesUsedUp, TurnFailed, record_turn
from uwf_git.commands.turn.turn import Played, StepFiles, Turn
from uwf_git.model.flow import Flow, FlowNode
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import get_head


@pytest.fixture
def thread(world: World) -> ThreadId:
    return world.begun(PLANS)


def status_of(world: World, thread: ThreadId) -> str:
    return world.snapshot(thread).record.status


def tried(world: World, thread: ThreadId) -> tuple[int, bool] | None:
    found = world.snapshot(thread).get_present().tried
    return None if found is None else (found.number, found.is_verdict)


def test_rejected_work_is_done_again_until_no_try_is_left(world: World, thread: ThreadId) -> None:
    driven, roles = drive(world, thread, script(verifier=BAD))

    assert roles == ["executor", "verifier"] * 3
    assert driven.stopped == "failed"
    assert driven.steps == 6
    assert isinstance(driven.failure, TriesUsedUp)
    assert driven.failure.message == (
        "executor has used up its 3 tries: verifier rejected it: no tests; no words; write both"
    )
    assert log(world, thread)[-1] == "step 0.1/0 failed"
    assert world.snapshot(thread).get_present().at is None
    world.assert_sound(thread)


def test_a_step_that_rejects_work_tells_which_try_and_why(world: World, thread: ThreadId) -> None:
    play = in_order({}, BAD)

    work, verdict = world.step(thread, play), world.step(thread, play)

    assert (work.is_rejected, verdict.is_rejected) == (False, True)
    assert verdict.said == "rejected, try 1 of 3: no tests; no words; write both"


def test_a_crash_and_a_rejection_use_up_the_same_tries(world: World, thread: ThreadId) -> None:
    asked = take(world, thread, fails(), {}, BAD, fails())
    assert asked == ["executor", "executor", "verifier", "executor"]
    assert status_of(world, thread) == "failed"
    world.assert_sound(thread)


@pytest.mark.parametrize("kind", ["interrupted", "lost"])
def test_what_says_nothing_of_the_work_is_no_try(world: World, thread: ThreadId, kind: str) -> None:
    take(world, thread, *[fails(kind=kind)] * 4, {}, BAD, *[fails(kind=kind)] * 4)
    assert (status_of(world, thread), tried(world, thread)) == ("ready", (2, False))
    world.assert_sound(thread)


def test_a_verifier_that_breaks_is_asked_again_and_the_work_is_not_repeated(world: World) -> None:
    thread = world.begun(PLANS)
    assert take(world, thread, {}, fails(), fails(), GOOD) == ["executor"] + ["verifier"] * 3
    assert world.snapshot(thread).get_present().at == "0.1/0"
    world.assert_sound(thread)


def test_a_verdict_that_cannot_be_told_is_a_failure_of_the_verifier(world: World) -> None:
    thread = world.begun(PLANS.replace("meta.verified === true", "meta.report.verified"))
    take(world, thread, {})
    with pytest.raises(TurnFailed, match="its verdict cannot be told") as failed:
        world.step(thread, in_order({}))
    assert failed.value.facts["kind"] == "verdict"
    assert tried(world, thread) == (1, True)
    world.assert_sound(thread)


def test_a_hint_is_told_until_a_verdict_accepts_the_work(world: World, thread: ThreadId) -> None:
    take(world, thread, *[{}, BAD] * 3)
    world.retry(thread, hint="look at the wiki")

    told = []
    for result in ({}, BAD, {}, GOOD, {}):
        take(world, thread, result)
        told.append(get_context(world.store, thread)["hint"])

    assert told == ["look at the wiki"] * 3 + [None] * 2


def test_what_steers_a_thread_meanwhile_counts_for_the_verdict(world: World) -> None:
    thread = world.begun(PLANS)

    def one_more(_turn: Turn) -> Played:
        world.patch(thread, {"tries": 4})
        return replied(BAD)

    take(world, thread, *[{}, BAD] * 2, {}, one_more)

    assert (status_of(world, thread), tried(world, thread)) == ("ready", (4, False))
    world.assert_sound(thread)


def test_a_verifier_may_be_a_person(world: World) -> None:
    thread = world.start("nobody", "verifier=human", workflow=world.put(PLANS).workflow)
    take(world, thread, {})
    assert world.step(thread).status == "waiting"
    for verdict, status in ((BAD, "ready"), (BAD, "ready"), (BAD, "failed")):
        told = world.answer(thread, PersonAnswer(verdict))
        assert (told.role, told.status) == ("verifier", status)
        if status == "ready":
            take(world, thread, {})
            world.step(thread)
    world.assert_sound(thread)


def test_the_conditions_of_verdicts_may_be_jsonata(world: World) -> None:
    thread = world.begun(PLANS.replace("root:", "language: jsonata\nroot:").replace("===", "="))
    _, roles = drive(world, thread, script(verifier=[BAD, GOOD, GOOD]))
    assert roles == ["executor", "verifier"] * 3
    world.assert_sound(thread)


def test_a_verdict_that_is_not_what_the_verifier_said_is_found(world: World) -> None:
    thread = world.begun(PLANS)
    take(world, thread, {})
    turns: list[Turn] = []

    def capture(turn: Turn) -> Played:
        turns.append(turn)
        raise NotPlayed

    with pytest.raises(NotPlayed):
        world.step(thread, capture)
    turn = turns[0]
    assert turn.place is not None
    node = turn.place.node
    lies = FlowNode(node.place, "agent", {**node.fields, "verifiedBy": LENIENT})
    flow = Flow({**turn.place.flow.nodes, node.place: lies})
    lying = turn._replace(place=turn.place._replace(flow=flow))

    record_turn(world.caller, get_head(world.store, thread), lying, replied(BAD))

    told = tell(world.store, thread, world.tip(thread))
    assert any(line.startswith("now.json says cursor") for line in told)


def test_a_usage_limit_is_no_try(world: World, thread: ThreadId) -> None:
    take(world, thread, {}, BAD)
    limit = fails(kind="limit", left=StepFiles(reset_at=world.caller.now_ms() + 1000))
    take(world, thread, limit)
    assert (status_of(world, thread), tried(world, thread)) == ("waiting", (2, False))
    world.resume(thread)
    take(world, thread, {}, limit)
    assert (status_of(world, thread), tried(world, thread)) == ("waiting", (2, True))
    world.assert_sound(thread)


LENIENT = {"agentId": "verifier", "when": "true"}


class NotPlayed(Exception):
    """The turn was looked at only."""


def test_a_verdict_of_a_dead_engine_is_taken_up_and_the_work_is_not_repeated(world: World) -> None:
    thread = world.start(world.program(AGENT), workflow=world.put(PLANS).workflow)
    player = agent_player(None)

    def dies(turn: Turn) -> Played:
        player(turn)
        raise NotPlayed

    for _ in range(4):
        with pytest.raises(NotPlayed):
            world.step(thread, dies)
        world.step(thread, player)

    assert world.snapshot(thread).get_present().at == "0.2/0"
    assert Path(world.store.path, "runs").read_text().split() == ["executor", "verifier"] * 2
    world.assert_sound(thread)


AGENT = """\
echo "$UWF_ROLE" >>"$UWF_REPO/runs"
printf '{"meta": {"verified": true}, "content": "What was said."}'
"""


def test_events_tell_why_no_try_is_left(world: World, thread: ThreadId) -> None:
    take(world, thread, *[{}, BAD] * 3)
    told = EventReader(world.store, EventOptions()).read(world.tip(thread))[-1]
    assert told["type"] == "workflow:error"
    assert told["payload"]["error"].startswith("verifier rejected it: no tests")


BRANCHES = """\
name: branches
description: Verified work in branches.
initialState: {plans: [{file: 000.md}, {file: 001.md}]}
root:
  type: map
  over: state.plans
  as: plan
  onError: continue
  nodes:
    - type: agent
      agentId: executor
      verifiedBy: {agentId: verifier, when: meta.verified === true}
"""


def test_a_branch_whose_work_is_rejected_is_given_up_with_why(world: World) -> None:
    thread = world.begun(BRANCHES)

    def play(turn: Turn) -> Played:
        is_good = turn.present.state["plan"]["file"] == "001.md"
        return replied(GOOD if is_good and turn.role == "verifier" else BAD)

    driven, _ = drive(world, thread, play)

    state = world.snapshot(thread).get_present().state
    assert driven.stopped == "end"
    assert state["errors"] == ["verifier rejected it: no tests; no words; write both"]
    world.assert_sound(thread)
