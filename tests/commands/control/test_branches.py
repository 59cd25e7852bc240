"""Steering threads that have split: a pause, a kill and limits reach all branches below."""

import threading
from typing import Any

import pytest
from commands.at_work import wait_until
from commands.turns import branches, drive, log, script
from commands.world import Git, World, fails
from refusing import refuses

from uwf_git.agents.run_files import find_group
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.runs import PlayedElsewhere
from uwf_git.commands.control.answer import PersonAnswer, answer_thread, read_question
from uwf_git.commands.family import BranchHeld
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.step.ending import end_by_kill
from uwf_git.commands.turn.branches import ThreadNotActive, ThreadNotReady, WrongStatus
from uwf_git.commands.turn.flow import LimitReached
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.local_files import list_run_dirs

TREE = """\
name: tree
root:
  type: sequential
  nodes:
    - {type: agent, agentId: first}
    - type: parallel
      name: outer
      nodes:
        - type: sequential
          nodes: [{type: agent, agentId: one}, {type: agent, agentId: two}]
        - type: parallel
          name: inner
          nodes: [{type: agent, agentId: three}, {type: agent, agentId: four}]
    - {type: agent, agentId: last}
"""


def grown(world: World, **limits: Any) -> tuple[ThreadId, list[ThreadId]]:
    """Return a thread of TREE whose three leaves have begun, and these."""
    thread = world.begun(TREE + (f"config: {limits}\n" if limits else ""))
    for _ in range(2):
        world.step(thread, script())
    for _ in range(2):
        # The first step begins the inner thread, the second one its branches.
        world.step(thread, fails(kind="lost"))
    one, inner = branches(world, thread)
    return thread, [one, *branches(world, inner)]


def test_a_pause_is_one_commit_and_holds_every_branch(world: World) -> None:
    thread, leaves = grown(world)
    before = [world.tip(each) for each in leaves]

    world.pause(thread)

    assert [world.tip(each) for each in leaves] == before
    for leaf in leaves:
        with pytest.raises(BranchHeld, match="is paused"):
            world.step(leaf, script())
    with pytest.raises(ThreadNotReady):
        drive(world, thread, script())
    world.resume(thread)
    assert world.snapshot(thread).record.status == "split"
    assert drive(world, thread, script())[0].stopped == "end"
    world.assert_sound(thread)


def test_a_pause_holds_the_answer_of_a_person_too(world: World) -> None:
    thread, (leaf, *_) = grown(world)
    assert world.step(leaf, command="human").status == "waiting"
    question = read_question(world.store, world.caller, leaf)
    said = PersonAnswer({}, "Fine.")

    world.pause(thread)
    with pytest.raises(BranchHeld, match="is paused"):
        answer_thread(world.store, world.caller, question, said)
    world.resume(thread)

    assert answer_thread(world.store, world.caller, question, said).status == "ready"
    world.assert_sound(thread)


def test_a_kill_ends_the_thread_first_and_then_all_below(world: World) -> None:
    thread, leaves = grown(world)

    world.kill(thread, reason="enough")

    for each in (thread, branches(world, thread)[1], *leaves):
        assert log(world, each)[-1] == "kill killed"
        assert world.snapshot(each).body == "enough"
    assert world.store.refs.find(f"refs/threads/{thread}") is None
    world.assert_sound(thread)
    for leaf in leaves:
        world.assert_sound(leaf)
    with pytest.raises(ThreadNotActive):
        world.kill(thread)


def test_a_second_kill_ends_what_a_crash_left(world: World) -> None:
    thread, leaves = grown(world)
    end_by_kill(world.store, world.caller, thread, reason="crashed after this")

    world.kill(thread)

    assert [world.snapshot(each).record.status for each in leaves] == ["killed"] * 3
    assert world.snapshot(leaves[0]).body == "crashed after this"


def test_a_step_of_a_branch_ends_what_a_crash_left(world: World) -> None:
    thread, leaves = grown(world)
    end_by_kill(world.store, world.caller, thread, reason="crashed after this")

    with pytest.raises(BranchHeld, match="is killed"):
        world.step(leaves[0], script())

    assert [world.snapshot(each).record.status for each in leaves] == ["killed"] * 3


def wait_for_agents(world: World, threads: list[ThreadId]) -> None:
    """Wait until an agent works in each of *threads*."""

    def have_begun() -> bool:
        runs = [run for each in threads for run in list_run_dirs(world.store, each)]
        groups = [find_group(run.path, run.alive) for run in runs]
        return len(groups) - groups.count(None) == len(threads)

    wait_until(have_begun, "no agents")


class Background:
    """A drive in a thread of Python."""

    def __init__(self, world: World, thread: ThreadId, agent: str) -> None:
        self.stopped = ""
        world.amend(thread, agent)
        self._thread = threading.Thread(target=self._run, args=(world, thread))
        self._thread.start()

    def _run(self, world: World, thread: ThreadId) -> None:
        self.stopped = drive(world, thread, agent_player(None), jobs=8)[0].stopped

    def wait(self) -> str:
        self._thread.join(60)
        return self.stopped


@pytest.fixture
def sleeping(world: World) -> tuple[ThreadId, list[ThreadId], Background]:
    """Return a thread, its leaves, and a drive of it in which an agent works in each leaf."""
    thread, leaves = grown(world)
    agent = world.program("exec sleep 60")
    for leaf in leaves:
        world.amend(leaf, agent)
    background = Background(world, thread, agent)
    wait_for_agents(world, leaves)
    return thread, leaves, background


def test_pause_now_stops_the_agents_of_all_branches(
    world: World, sleeping: tuple[ThreadId, list[ThreadId], Background]
) -> None:
    thread, leaves, background = sleeping

    world.pause(thread, now=True, reason="look first")

    assert background.wait() == "paused"
    assert [log(world, each)[-1] for each in leaves] == [
        "attempt 0/1/0/0 ready",
        "attempt 0/1/1/0 ready",
        "attempt 0/1/1/1 ready",
    ]
    assert log(world, thread)[-1] == "pause paused"
    world.resume(thread)
    assert drive(world, thread, script())[0].stopped == "end"
    world.assert_sound(thread)


def test_pause_now_goes_on_after_a_branch_that_another_user_plays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread, leaves = grown(world)
    asked: list[ThreadId] = []

    def stop(_store: object, each: ThreadId, *, reason: str) -> bool:
        asked.append(each)
        if each == leaves[0]:
            raise PlayedElsewhere(each, {})
        return bool(reason)

    monkeypatch.setattr("uwf_git.commands.control.answer.stop_agents", stop)

    with refuses(PlayedElsewhere, match=f"{thread} is paused all the same"):
        world.pause(thread, now=True)
    assert {thread, *leaves} < {*asked}


def test_kill_stops_the_agents_of_all_branches(
    world: World, sleeping: tuple[ThreadId, list[ThreadId], Background]
) -> None:
    thread, leaves, background = sleeping

    world.kill(thread, reason="wrong way")

    assert background.wait() == "killed"
    assert [log(world, each)[-2:] for each in leaves] == [
        [f"attempt {at} ready", "kill killed"] for at in ("0/1/0/0", "0/1/1/0", "0/1/1/1")
    ]
    world.assert_sound(thread)


def test_any_ends_the_process_groups_of_the_losers(world: World) -> None:
    thread = world.begun("""\
name: race
root:
  type: parallel
  join: any
  nodes: [{type: agent, agentId: quick}, {type: agent, agentId: slow}]
""")
    agent = world.program('[ "$UWF_ROLE" = quick ] && echo done && exit; sleep 60 & wait')
    world.amend(thread, agent)

    driven, done = drive(world, thread, agent_player(None), jobs=2)

    assert (driven.stopped, done) == ("end", ["quick", "parallel: 1 completed, 1 killed"])
    loser = branches(world, thread)[1]
    assert log(world, loser)[-2:] == ["attempt 0/1 ready", "kill killed"]
    assert list_run_dirs(world.store, loser) == []
    world.assert_sound(thread)


def test_limits_count_what_all_branches_spent(world: World) -> None:
    thread, leaves = grown(world, maxSteps=3)
    world.step(leaves[0], script())
    world.step(leaves[1], script())

    with pytest.raises(LimitReached, match="3 of 3 steps") as caught:
        world.step(leaves[2], script())

    assert caught.value.facts["thread"] == thread
    assert show_thread(world.store, thread)["limitsUsed"] == {"maxSteps": 3}
    driven, done = drive(world, thread, script())
    assert (driven.stopped, done) == ("limit", [])
    world.amend(thread, limits={"maxSteps": 6})
    assert drive(world, thread, script())[0].stopped == "end"
    world.assert_sound(thread)


def test_a_branch_gets_no_limits_of_its_own(world: World) -> None:
    _thread, leaves = grown(world)

    with pytest.raises(WrongStatus, match="limits of its parent"):
        world.amend(leaves[0], limits={"maxSteps": 6})


def test_a_poke_is_refused_where_branches_took_the_steps(world: World) -> None:
    thread, leaves = grown(world)
    with pytest.raises(WrongStatus, match="has split"):
        world.poke(thread)
    with pytest.raises(WrongStatus, match="no step"):
        world.poke(leaves[0])
    drive(world, thread, script(), until="four")
    while world.snapshot(thread).record.status == "split":
        world.step(thread, script())

    with pytest.raises(WrongStatus, match="has joined"):
        world.poke(thread)
    world.step(thread, script())
    world.poke(thread)

    assert world.snapshot(thread).get_present().at == "0/1"
    assert drive(world, thread, script())[0].stopped == "end"
    world.assert_sound(thread)


OTHER = TREE.replace("agentId: last", "agentId: closer")


def amend(world: World, thread: ThreadId, source: str) -> None:
    world.amend(thread, workflow=world.put(source).workflow, default_agent="nobody")


def test_a_workflow_changes_neither_while_split_nor_in_a_branch(world: World) -> None:
    thread, leaves = grown(world)
    for each, problem in ((thread, "has split"), (leaves[0], "is a branch")):
        with pytest.raises(WrongStatus, match=problem):
            amend(world, each, OTHER)


def test_a_fork_of_a_branch_keeps_what_leads_to_where_it_began(world: World) -> None:
    """It begins and ends at a place of the flow, which another flow may not have."""
    _, leaves = grown(world)
    fork = world.fork(leaves[0])

    for other in (LINE, TREE.replace("    - {type: agent, agentId: first}\n", "")):
        with refuses("place-gone", match="cannot stand at 0/1/0"):
            amend(world, fork, other)
    amend(world, fork, TREE.replace("agentId: two", "agentId: other"))

    assert drive(world, fork, script())[1] == ["one", "other"]
    world.assert_sound(fork)


LINE = """\
name: line
root:
  type: sequential
  nodes:
    - {type: agent, agentId: one}
    - {type: agent, agentId: two}
    - {type: agent, agentId: three}
"""


def test_a_workflow_that_moves_what_was_done_to_another_place_is_refused(world: World) -> None:
    """Else two would run again, and zero never."""
    thread = world.begun(LINE)
    drive(world, thread, script(), until="two")

    with refuses("place-gone", match="0/1"):
        amend(
            world, thread, LINE.replace("    - {", "    - {type: agent, agentId: zero}\n    - {", 1)
        )
    amend(world, thread, LINE.replace("agentId: three", "agentId: four"))

    assert drive(world, thread, script())[1] == ["four"]


def test_a_poke_to_a_place_that_the_workflow_lost_is_refused(world: World) -> None:
    source = LINE.replace(
        "{type: agent, agentId: one}", "{type: loop, nodes: [{type: agent, agentId: one}]}"
    )
    thread = world.begun(source.replace("type: loop,", "type: loop, maxIterations: 2,"))
    drive(world, thread, script(), until="two")
    amend(world, thread, LINE)

    with refuses("place-gone", match=r"0/0\.2/0"):
        world.poke(thread)

    assert drive(world, thread, script())[1] == ["three"]
    world.assert_sound(thread)


def test_a_workflow_with_another_role_where_a_person_is_asked_is_refused(world: World) -> None:
    """Else the answer would be recorded at the place of another role."""
    thread = world.stepped(script(), source=LINE)
    world.step(thread, command="human")

    with refuses("place-gone", match="0/1"):
        amend(world, thread, LINE.replace("two", "other").replace("three", "two"))

    assert log(world, thread)[-1] == "wait 0/1 waiting"


def test_a_retry_of_a_thread_without_failed_branches_is_refused(world: World) -> None:
    thread, _ = grown(world)

    with pytest.raises(WrongStatus, match="none of its branches has failed"):
        world.retry(thread)


@pytest.mark.parametrize("verb", ["run", "step"])
def test_ctrl_c_stops_every_agent_and_records_each_attempt(
    world: World, git: Git, verb: str
) -> None:
    thread, leaves = grown(world)
    agent = world.program("exec sleep 60")
    for each in (thread, *leaves):
        world.amend(each, agent)
    running = world.process("thread", verb, thread)
    wait_for_agents(world, leaves)

    running.send_signal(2)
    _, err = running.communicate(timeout=60)

    assert running.returncode == 130, err.decode()
    assert f"nothing was lost: `uwf thread {verb} {thread}`" in err.decode()
    assert [log(world, each)[-1].split()[0] for each in leaves] == ["attempt"] * 3
    assert [world.snapshot(each).get_present().failures for each in leaves] == [0, 0, 0]
    assert drive(world, thread, script())[0].stopped == "end"
    world.assert_sound(thread)
    assert git("fsck", "--strict", "--no-dangling", cwd=world.store.path) == ""
