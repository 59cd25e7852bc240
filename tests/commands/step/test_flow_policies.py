"""What flows do when agents fail, by their policies, and the log that each case leaves."""

from typing import Any

import pytest
from commands.turns import branches, drive, log, script
from commands.world import World, fails, replied
from refusing import refuses

from uwf_git.cli.thread import steer as patch_verb
from uwf_git.commands.control.answer import AnswerRefused, PersonAnswer
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.step.step_thread import check_branches
from uwf_git.commands.turn.turn import Played, Player, Turn
from uwf_git.engine.flow_move import LoopExhausted

__all__ = ["patch_verb"]


def flow(root: str) -> str:
    """Return a workflow file with *root*, which is indented by two spaces."""
    return f"name: policies\ndescription: Tries policies.\nroot:\n{root}"


def failing(*roles: str, times: int = 1000) -> Player:
    """Return a player whose *roles* fail so often, each with its name as the error."""
    left = dict.fromkeys(roles, times)

    def play(turn: Turn) -> Played:
        if left.get(turn.role, 0) > 0:
            left[turn.role] -= 1
            return fails(f"{turn.role} broke")(turn)
        return replied({})

    return play


SEQUENCE = """\
  type: sequential
  %s
  nodes:
    - {type: agent, agentId: one, output: one %s}
    - {type: agent, agentId: two, output: two}
"""

CASES = {
    "an agent fails, and stops the thread": (
        SEQUENCE % ("", ""),
        failing("one"),
        ("failed", ["attempt 0/0 failed"]),
    ),
    "an agent is tried again": (
        SEQUENCE % ("", ", retries: 2"),
        failing("one", times=2),
        ("end", ["attempt 0/0 ready"] * 2 + ["step 0/0 ready", "step 0/1 ready", "end completed"]),
    ),
    "retries of the container are those of its agents": (
        SEQUENCE % ("retries: 1", ""),
        failing("one", times=1),
        ("end", ["attempt 0/0 ready", "step 0/0 ready", "step 0/1 ready", "end completed"]),
    ),
    "those of the agent come first": (
        SEQUENCE % ("retries: 5", ", retries: 0"),
        failing("one"),
        ("failed", ["attempt 0/0 failed"]),
    ),
    "retry is stop with one retry": (
        SEQUENCE % ("", ", onError: retry"),
        failing("one"),
        ("failed", ["attempt 0/0 ready", "attempt 0/0 failed"]),
    ),
    "an agent is given up": (
        SEQUENCE % ("", ", onError: continue"),
        failing("one"),
        ("end", ["attempt 0/0 ready", "step 0/1 ready", "end completed"]),
    ),
    "an agent is given up after its retries": (
        SEQUENCE % ("", ", onError: continue, retries: 1"),
        failing("one"),
        ("end", ["attempt 0/0 ready"] * 2 + ["step 0/1 ready", "end completed"]),
    ),
    "the container is given up, with what is left of it": (
        SEQUENCE % ("onError: continue", ""),
        failing("one"),
        ("end", ["attempt 0/0 ready", "end completed"]),
    ),
    "a loop is given up, and what follows goes on": (
        """\
  type: sequential
  nodes:
    - type: loop
      maxIterations: 3
      onError: continue
      nodes: [{type: agent, agentId: one}]
    - {type: agent, agentId: two}
""",
        failing("one"),
        ("end", ["attempt 0/0.1/0 ready", "step 0/1 ready", "end completed"]),
    ),
    "a pass of a loop is given up, and the next one comes": (
        """\
  type: loop
  maxIterations: 2
  nodes: [{type: agent, agentId: one, onError: continue}]
""",
        failing("one", times=1),
        ("end", ["attempt 0.1/0 ready", "step 0.2/0 ready", "end completed"]),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_one_thread(world: World, case: str) -> None:
    root, play, (stopped, expected) = CASES[case]
    thread = world.begun(flow(root))

    driven, _ = drive(world, thread, play, sleep=lambda _s: None)

    assert driven.stopped == stopped
    assert log(world, thread) == ["start ready", *expected]
    world.assert_sound(thread)


PARALLEL = """\
  type: parallel
  name: checks
  %s
  nodes:
    - {type: agent, agentId: one, output: one}
    - {type: agent, agentId: two, output: two}
    - {type: agent, agentId: three, output: three}
"""


def test_one_of_three_fails_and_a_retry_of_the_parent_finishes(world: World) -> None:
    thread = world.begun(flow(PARALLEL % ""))

    driven, done = drive(world, thread, failing("two"), jobs=4)

    assert (driven.stopped, driven.last.status) == ("failed", "split")
    kept = sorted(done)
    assert world.snapshot(branches(world, thread)[1]).record.status == "failed"
    world.retry(thread)
    driven, again = drive(world, thread, script())
    assert driven.stopped == "end"
    assert sorted([*kept, *again]) == ["checks: 3 completed", "one", "three", "two"]
    world.assert_sound(thread)


def test_a_branch_that_failed_is_given_up(world: World) -> None:
    thread = world.begun(flow(PARALLEL % "onError: continue"))

    driven, done = drive(world, thread, failing("two"))

    assert (driven.stopped, done) == ("end", ["one", "three", "checks: 2 completed, 1 killed"])
    state = world.snapshot(thread).get_present().state
    assert (state["errors"], "two" in state) == (["two broke"], False)
    assert log(world, branches(world, thread)[1])[1:] == ["attempt 0/1 failed", "kill killed"]
    world.assert_sound(thread)


def test_a_step_that_gives_a_branch_up_says_to_step_its_thread(world: World) -> None:
    thread = world.stepped(source=flow(PARALLEL % "onError: continue"))
    stepped = world.step(thread, failing("two"))

    with pytest.raises(TurnFailed) as caught:
        check_branches(stepped)

    assert f"`uwf thread step {thread}` goes on without that branch" in str(caught.value.hint)
    # No command is about the branch that has ended.
    assert f"{branches(world, thread)[1]}`" not in str(caught.value.hint)


NESTED = """\
  type: parallel
  onError: continue
  nodes:
    - type: parallel
      %s
      nodes: [{type: agent, agentId: one}, {type: agent, agentId: two}]
    - {type: agent, agentId: three}
"""


@pytest.mark.parametrize("jobs", [1, 4])
def test_a_branch_whose_own_branch_failed_is_given_up(world: World, jobs: int) -> None:
    thread = world.begun(flow(NESTED % ""))

    driven, done = drive(world, thread, failing("one"), jobs=jobs)

    assert (driven.stopped, done[-1]) == ("end", "parallel: 1 completed, 1 killed")
    state = world.snapshot(thread).get_present().state
    assert (state["errors"], "threeOutput" in state) == (["one broke"], True)
    inner = branches(world, thread)[0]
    ended = [inner, *branches(world, inner)]
    assert {world.snapshot(each).record.status for each in ended} <= {"killed", "completed"}
    world.assert_sound(thread)


def test_what_a_branch_itself_gives_up_is_no_failure_of_it(world: World) -> None:
    thread = world.begun(flow(NESTED % "onError: continue"))

    driven, done = drive(world, thread, failing("one"), jobs=4)

    assert (driven.stopped, done[-1]) == ("end", "parallel: 2 completed")
    assert world.snapshot(thread).get_present().state["errors"] == ["one broke"]


def test_a_workflow_whose_branch_failed_is_given_up_step_by_step(world: World) -> None:
    world.put(flow(PARALLEL % "").replace("policies", "inner"))
    thread = world.begun(
        flow("""\
  type: sequential
  nodes:
    - {type: workflow, use: inner, onError: continue}
    - {type: agent, agentId: four}
""")
    )
    for _ in range(8):
        if world.step(thread, failing("two")).status == "completed":
            break

    assert log(world, thread)[1:] == [
        "split 0/0 split",
        "join 0/0 ready",
        "step 0/1 ready",
        "end completed",
    ]
    assert world.snapshot(thread).get_present().state["errors"] == ["two broke"]
    world.assert_sound(thread)


def test_more_failures_than_are_tolerated_stop_the_thread(world: World) -> None:
    thread = world.begun(flow(PARALLEL % "onError: continue\n  tolerate: 1"))

    driven, _ = drive(world, thread, failing("one", "two"))

    assert (driven.stopped, driven.last.status) == ("failed", "split")
    assert [log(world, each)[-1] for each in branches(world, thread)[:2]] == [
        "kill killed",
        "attempt 0/1 failed",
    ]
    world.assert_sound(thread)


def test_the_first_branch_to_complete_is_enough(world: World) -> None:
    thread = world.begun(flow(PARALLEL % "join: any"))

    driven, _ = drive(world, thread, script(one="a", two="b", three="c"))

    assert driven.stopped == "end"
    state = world.snapshot(thread).get_present().state
    # Those at work may complete as well before they are ended; one counts.
    assert len({"one", "two", "three"} & state.keys()) == 1
    assert "errors" not in state
    statuses = [world.snapshot(each).record.status for each in branches(world, thread)]
    assert "completed" in statuses
    assert set(statuses) <= {"completed", "killed"}
    world.assert_sound(thread)


def test_an_item_that_failed_is_null_and_the_others_are_kept(world: World) -> None:
    thread = world.begun(
        "initialState: {list: [1, 2, 3]}\n"
        + flow("""\
  type: map
  name: each
  over: state.list
  output: results
  onError: continue
  nodes: [{type: agent, agentId: one}]
""")
    )

    def play(turn: Turn) -> Played:
        item = turn.present.state["item"]
        return fails("odd")(turn) if item == 2 else replied({"half": item / 2})

    driven, _ = drive(world, thread, play)

    assert driven.stopped == "end"
    state = world.snapshot(thread).get_present().state
    assert state["results"] == [{"half": 0.5}, None, {"half": 1.5}]
    assert state["errors"] == ["odd"]
    world.assert_sound(thread)


def test_only_the_failed_item_runs_again(world: World) -> None:
    """As asked for in argo-workflows#16938."""
    thread = world.begun(
        "initialState: {list: [1, 2, 3]}\n"
        + flow("""\
  type: map
  over: state.list
  output: results
  nodes:
    - {type: agent, agentId: reads, input: "${item}"}
    - {type: agent, agentId: writes}
""")
    )
    played: list[tuple[str, int]] = []

    def play(turn: Turn) -> Played:
        item = turn.present.state["item"]
        played.append((turn.role, item))
        if (turn.role, item) == ("writes", 2) and played.count(("writes", 2)) == 1:
            return fails()(turn)
        return replied({"done": item})

    drive(world, thread, play)
    world.retry(thread)
    drive(world, thread, play)

    # What the item had done before it failed is not done again either.
    once = [(role, item) for role in ("reads", "writes") for item in (1, 2, 3)]
    assert sorted(played) == sorted([*once, ("writes", 2)])
    results = world.snapshot(thread).get_present().state["results"]
    assert results == [{"done": 1}, {"done": 2}, {"done": 3}]


LOOPS = {
    "by its condition": "{type: loop, condition: state.no, nodes: [{type: agent, agentId: one}]}",
    "at its bound": "{type: loop, maxIterations: 1, nodes: [{type: agent, agentId: one}]}",
    "without an item": "{type: loop, over: state.none, nodes: [{type: agent, agentId: one}]}",
    "given up": (
        "{type: loop, maxIterations: 9, onError: continue, nodes: [{type: agent, agentId: bad}]}"
    ),
}

AROUND = {
    "a sequence": ("{type: sequential, nodes: [LOOP, AFTER]}", 1),
    "a loop": ("{type: loop, maxIterations: 2, nodes: [LOOP, AFTER]}", 2),
    "a condition": ("{type: conditional, condition: 'true', nodes: [LOOP, AFTER]}", 1),
    "a branch": ("{type: parallel, nodes: [{type: sequential, nodes: [LOOP, AFTER]}]}", 1),
    "an item": ("{type: map, over: '[1, 2]', nodes: [LOOP, AFTER]}", 2),
}


@pytest.mark.parametrize("ends", LOOPS)
@pytest.mark.parametrize("around", AROUND)
def test_the_end_of_a_loop_leads_to_what_comes_after_it(
    world: World, ends: str, around: str
) -> None:
    """In adk-python#1376 it ended the sequence around it as well."""
    tree, times = AROUND[around]
    root = tree.replace("LOOP", LOOPS[ends]).replace("AFTER", "{type: agent, agentId: after}")
    thread = world.begun(
        "name: loops\ndescription: What comes after.\ninitialState: {none: [], no: false}\n"
        f"root: {{type: sequential, nodes: [{root}, {{type: agent, agentId: last}}]}}\n"
    )

    driven, done = drive(
        world, thread, lambda turn: fails("no")(turn) if turn.role == "bad" else replied({})
    )

    assert (driven.stopped, done.count("after"), done[-1]) == ("end", times, "last")


def test_a_step_tells_the_conflict_and_records_nothing(world: World) -> None:
    thread = world.begun(flow(PARALLEL % ""))
    with refuses("merge-conflict"):
        drive(world, thread, script(one={"it's": 1}, two={"it's": "2"}, three={}))
    before = world.tip(thread)

    told = world.step(thread, script())

    assert [each.error and each.error.code for each in told.branches] == ["merge-conflict"]
    assert world.tip(thread) == before


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("first", 1), ("last", 3), ("collect", [1, 2, 3]), ("{v: last}", 3), ("{'*': first}", 1)],
)
def test_a_policy_settles_it_before(world: World, policy: str, expected: Any) -> None:
    thread = world.begun(flow(PARALLEL % f"merge: {policy}"))

    drive(world, thread, script(one={"v": 1}, two={"v": 2}, three={"v": 3}))

    assert world.snapshot(thread).get_present().state["v"] == expected
    world.assert_sound(thread)


def test_branches_that_set_one_key_are_told_when_the_file_is_put(world: World) -> None:
    """In langgraph#2336 that was an error in the middle of the run."""
    source = flow(PARALLEL % "").replace("output: two", "output: one")

    [warning] = world.put(source).warnings

    assert "'one' is set by nodes[0], nodes[1]" in warning.message
    assert world.put(source.replace("name: checks", "merge: {one: last}")).warnings == ()


def test_a_loop_that_may_not_be_left_stops_at_its_bound(world: World) -> None:
    thread = world.begun(
        flow("""\
  type: loop
  condition: state.ok !== true
  maxIterations: 2
  onExhausted: stop
  nodes: [{type: agent, agentId: one}]
""")
    )

    with pytest.raises(LoopExhausted):
        drive(world, thread, script())

    assert log(world, thread) == ["start ready", "step 0.1/0 ready", "step 0.2/0 ready"]
    world.patch(thread, {"ok": True})
    assert drive(world, thread, script())[0].stopped == "end"
    world.assert_sound(thread)


LARGE = "x" * 600_000


def test_a_state_of_more_than_a_mebibyte_is_a_failed_try(world: World) -> None:
    thread = world.begun(flow(SEQUENCE % ("", ", retries: 1")))

    driven, _ = drive(
        world, thread, script(one=[{"a": LARGE}, {"a": "small"}], two=LARGE), sleep=lambda _s: None
    )

    assert driven.stopped == "end"
    assert log(world, thread)[1:3] == ["attempt 0/0 ready", "step 0/0 ready"]
    assert not world.snapshot(thread).get_present().last_attempt
    world.assert_sound(thread)


def test_a_person_whose_answer_makes_the_state_too_large_is_told(world: World) -> None:
    thread = world.begun(flow(SEQUENCE % ("", "")))
    world.step(thread, command="human")

    with pytest.raises(AnswerRefused, match="1,048,576"):
        world.answer(thread, PersonAnswer({"a": LARGE}))

    world.answer(thread, PersonAnswer({"a": 1}))
    world.assert_sound(thread)


@pytest.mark.parametrize("patch", [{"iteration": 3}, {"iteration": None}, {"a": LARGE, "b": LARGE}])
def test_a_patch_cannot_count_passes_or_be_too_large(world: World, patch: dict[str, Any]) -> None:
    thread = world.begun(flow(SEQUENCE % ("", "")))

    with refuses("bad-patch"):
        world.patch(thread, patch)

    assert log(world, thread) == ["start ready"]


def test_a_limit_stops_a_flow_before_the_step_beyond(world: World) -> None:
    thread = world.begun("config: {maxExecutionTime: 1000}\n" + flow(SEQUENCE % ("", "")))

    driven, done = drive(world, thread, script())

    assert (driven.stopped, done) == ("limit", ["one"])
