"""One drive for all branches: how many steps it takes, and what ends it."""

import threading

import pytest
from commands.flows import CHECKS
from commands.turns import branches, drive, log, script
from commands.world import World, fails, replied
from refusing import refuses

from uwf_git.commands.control.answer import PersonAnswer
from uwf_git.commands.turn.branches import ThreadNotReady
from uwf_git.commands.turn.flow import LimitReached
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.errors import Refused
from uwf_git.store.threads.local_files import ThreadBusy, lock_drive


def wide(width: int, *, passes: int = 3, more: str = "") -> str:
    """Return a flow of so many branches; each sets a key of its own."""
    loops = "".join(
        f"    - {{type: loop, maxIterations: {passes}, nodes: "
        f"[{{type: agent, agentId: w{n} {more}}}]}}\n"
        for n in range(width)
    )
    return f"name: wide\ndescription: Many.\nroot:\n  type: parallel\n  nodes:\n{loops}"


def test_no_more_agents_are_at_work_than_jobs(world: World) -> None:
    thread = world.begun(wide(4, passes=1))
    lock, now, most = threading.Lock(), 0, 0
    two = threading.Barrier(2)

    def play(_turn: Turn) -> Played:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        two.wait(30)
        with lock:
            now -= 1
        return replied({})

    driven, _ = drive(world, thread, play, jobs=2)

    assert (driven.stopped, most) == ("end", 2)


def test_the_most_steps_of_a_thread_are_kept_by_agents_at_once(world: World) -> None:
    thread = world.begun(wide(4, passes=2) + "config: {maxSteps: 3}\n")
    three = threading.Barrier(3)

    def play(_turn: Turn) -> Played:
        three.wait(30)
        return replied({})

    driven, done = drive(world, thread, play, jobs=4)

    assert (driven.stopped, len(done)) == ("limit", 3)
    world.amend(thread, limits={"maxSteps": None})
    assert drive(world, thread, script(), jobs=4)[0].stopped == "end"
    world.assert_sound(thread)


def test_a_failed_try_leaves_room_for_another_step(world: World) -> None:
    thread = world.begun(wide(3, passes=1, more=", retries: 1") + "config: {maxSteps: 2}\n")
    tried: list[str] = []

    def play(turn: Turn) -> Played:
        tried.append(turn.role)
        return fails()(turn) if len(tried) == 1 else replied({})

    driven, done = drive(world, thread, play, jobs=3)

    assert (driven.stopped, len(done), len(tried)) == ("limit", 2, 3)


def test_it_stops_after_a_step_of_the_role(world: World) -> None:
    driven, done = drive(world, world.begun(wide(3)), script(), until="w1")

    assert (driven.stopped, done[-1], done.count("w1")) == ("until", "w1", 1)


def test_after_a_failure_no_step_begins(world: World) -> None:
    driven, done = drive(
        world, world.begun(wide(3)), lambda turn: (fails() if turn.role == "w1" else script())(turn)
    )

    # The first branch was done when the second one failed.
    assert (driven.stopped, done) == ("failed", ["w0"] * 3)


def test_a_branch_that_waits_between_tries_is_woken_by_a_pause(world: World) -> None:
    thread = world.begun(wide(2, more=", retries: 5"))

    def sleep(_seconds: float) -> None:
        if world.snapshot(thread).record.status == "split":
            world.pause(thread)

    driven, _ = drive(world, thread, fails(), sleep=sleep)

    assert (driven.stopped, driven.last.status) == ("paused", "paused")
    world.resume(thread)
    assert drive(world, thread, script())[0].stopped == "end"


def test_a_conflict_of_one_thread_leaves_the_others_at_work(world: World) -> None:
    thread = world.begun("""\
name: two
root:
  type: parallel
  nodes:
    - {type: parallel, nodes: [{type: agent, agentId: one}, {type: agent, agentId: two}]}
    - {type: loop, maxIterations: 3, nodes: [{type: agent, agentId: three}]}
""")

    with refuses("merge-conflict"):
        drive(world, thread, script(one={"v": 1}, two={"v": 2}))

    inner, other = branches(world, thread)
    assert log(world, inner)[-1] == "split 0/0 split"
    assert log(world, other)[-1] == "end completed"


RACE = """\
name: race
description: One is enough, and the other one cannot go on.
root:
  type: parallel
  join: any
  nodes:
    - %s
    - {type: loop, maxIterations: 2, nodes: [{type: agent, agentId: three}]}
"""


def test_a_loser_that_waits_for_a_person_holds_nobody(world: World) -> None:
    thread = world.begun(RACE % "{type: agent, agentId: one}" + "agentOverrides: {one: human}\n")

    driven, done = drive(world, thread, script())

    assert (driven.stopped, done[-1]) == ("end", "parallel: 1 completed, 1 killed")


def test_a_loser_that_fails_holds_nobody(world: World) -> None:
    thread = world.begun(RACE % "{type: agent, agentId: one}")

    def play(turn: Turn) -> Played:
        return replied({}) if turn.role == "three" else fails()(turn)

    driven, done = drive(world, thread, play)

    assert (driven.stopped, done) == ("end", ["three", "three", "parallel: 1 completed, 1 killed"])


def test_a_drive_that_has_taken_steps_stops_where_a_person_was_waited_for(world: World) -> None:
    thread = world.begun(wide(2, passes=2) + "agentOverrides: {w0: human}\n")
    assert drive(world, thread, script(), until="w1")[0].stopped == "until"

    driven, done = drive(world, thread, script())

    assert (driven.stopped, driven.steps, done) == ("waiting", 1, ["w1"])
    assert driven.waiting is not None
    with pytest.raises(ThreadNotReady, match="waits for a person"):
        drive(world, thread, script())


def test_a_limit_is_told_though_a_branch_was_paused_before(world: World) -> None:
    thread = world.begun(wide(3, passes=2) + "config: {maxSteps: 4}\n")
    assert drive(world, thread, script(), until="w1")[0].stopped == "until"
    world.pause(branches(world, thread)[1])

    assert drive(world, thread, script())[0].stopped == "limit"


@pytest.mark.parametrize("steps", [1, 0])
def test_what_refuses_a_branch_is_told_though_another_waits_for_a_person(
    world: World, steps: int
) -> None:
    thread = world.begun(wide(3) + "agentOverrides: {w0: human}\n")
    assert drive(world, thread, script(), until="w1")[0].stopped == "until"

    def play(turn: Turn) -> Played:
        if turn.role == "w2" or not steps:
            raise Refused("it is not trusted")
        return script()(turn)

    with pytest.raises(Refused, match="not trusted"):
        drive(world, thread, play)


def test_a_branch_that_is_answered_while_others_are_at_work_goes_on(world: World) -> None:
    thread = world.begun(wide(2, passes=2) + "agentOverrides: {w0: human}\n")

    def play(turn: Turn) -> Played:
        first = branches(world, thread)[0]
        if world.snapshot(first).record.depth == 0:
            world.answer(first, PersonAnswer({}))
        return script()(turn)

    driven, done = drive(world, thread, play)

    # Its person is asked twice.
    assert (driven.stopped, done) == ("waiting", ["w0", "w1", "w1", "w0"])


HELD = """\
name: held
root:
  type: parallel
  nodes:
    - {type: parallel, nodes: [{type: agent, agentId: one}, {type: agent, agentId: two}]}
    - {type: loop, maxIterations: 2, nodes: [{type: agent, agentId: three}]}
"""


def test_a_held_branch_is_not_taken_for_one_that_goes_on(world: World) -> None:
    thread = world.begun(HELD)

    def play(turn: Turn) -> Played:
        if turn.role == "one":
            world.pause(branches(world, thread)[0])
        return script()(turn)

    assert drive(world, thread, play)[0].stopped == "paused"


def test_a_split_branch_that_is_resumed_while_others_are_at_work_goes_on(world: World) -> None:
    thread = world.begun(HELD)
    drive(world, thread, script(), until="three")
    inner = branches(world, thread)[0]
    world.pause(inner)

    def play(turn: Turn) -> Played:
        if turn.role == "three" and world.snapshot(inner).record.status == "paused":
            world.resume(inner)
        return script()(turn)

    assert drive(world, thread, play)[0].stopped == "end"


def test_branches_at_a_limit_end_a_drive_that_does_nothing(world: World) -> None:
    thread = world.begun(wide(2, passes=2) + "config: {maxSteps: 1}\n")
    assert drive(world, thread, script())[0].stopped == "limit"
    with pytest.raises(LimitReached):
        drive(world, thread, script())


def test_an_agent_is_named_for_a_role_that_a_branch_is_at(world: World) -> None:
    thread = world.stepped(script(), source=CHECKS, times=2)
    with refuses("role-not-next", match="closer is not next .* turn of reviewer, tester"):
        world.step(thread, script(), agents=("closer=nobody",))
    assert len(world.step(thread, script(), agents=("tester=nobody",)).branches) == 2


def test_branches_that_wait_for_a_person_end_every_drive(world: World) -> None:
    thread = world.begun(wide(1, passes=1) + "agentOverrides: {w0: human}\n")

    assert drive(world, thread, script())[0].stopped == "waiting"
    with pytest.raises(ThreadNotReady, match="waits for a person"):
        drive(world, thread, script())


def test_a_branch_of_another_drive_is_left_to_it(world: World) -> None:
    thread = world.stepped(script(), fails(kind="lost"), source=wide(2, passes=1))
    first = branches(world, thread)[0]

    with lock_drive(world.store, first, since_ms=world.caller.now_ms()), pytest.raises(ThreadBusy):
        drive(world, thread, script())

    assert [log(world, each)[-1] for each in branches(world, thread)] == [
        "attempt 0/0.1/0 ready",
        "end completed",
    ]
    assert drive(world, thread, script())[0].stopped == "end"


def test_an_error_of_the_program_ends_all_agents(world: World) -> None:
    thread = world.begun(wide(2))

    def play(_turn: Turn) -> Played:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError):
        drive(world, thread, play, jobs=2)

    assert drive(world, thread, script())[0].stopped == "end"
