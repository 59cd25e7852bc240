"""Steering is recorded at once, also during a step; the step that ends later comes after it."""

import pytest
from commands.at_work import BEGUN, RESULT, AtWork, begin, wait_until_gone
from commands.crowd import at_once
from commands.sharing import Sites
from commands.world import Git, World, content_player, fails, replied
from refusing import raising, refuses

from uwf_git.commands.control.answer import steer_thread
from uwf_git.commands.step.record_turn import WorkKept
from uwf_git.commands.turn.branches import ThreadNotReady
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.event_folds import Words
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import HeadMoved
from uwf_git.store.threads.history import NewCommit, Snapshot, list_preserved
from uwf_git.store.threads.local_files import ThreadBusy

STEERERS = 20


def test_pause_while_a_step_is_under_way_comes_first_and_lasts(world: World) -> None:
    thread = world.begun()

    def play(turn: Turn) -> Played:
        world.pause(thread, reason="wait for Ann")
        return content_player(turn)

    stepped = world.step(thread, play)

    assert (stepped.status, stepped.role, stepped.depth) == ("paused", "writer", 1)
    assert world.events(thread) == ["start", "pause", "step"]
    present = world.snapshot(thread).get_present()
    assert (present.paused_from, present.depth) == ("ready", 1)
    with pytest.raises(ThreadNotReady):
        world.step(thread)
    world.assert_whole()


def test_pause_whose_engine_does_not_end_is_told_of(
    world: World, thread: ThreadId, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = ThreadBusy(thread, {})
    monkeypatch.setattr("uwf_git.commands.control.answer.stop_agents", raising(busy))

    with refuses(ThreadBusy) as refused:
        world.pause(thread, now=True)

    assert refused.value.message.endswith(f"; thread {thread} is paused all the same")
    assert world.events(thread) == ["start", "pause"]


def test_try_that_fails_under_a_pause_is_recorded_and_the_pause_lasts(world: World) -> None:
    thread = world.begun()

    def play(turn: Turn) -> Played:
        world.pause(thread)
        return fails("no key")(turn)

    failed = world.fail(thread, play)

    assert failed.facts["status"] == "paused"
    assert "uwf thread resume" in str(failed.hint)
    assert world.snapshot(thread).get_present().paused_from == "failed"
    world.resume(thread)
    assert world.snapshot(thread).record.status == "failed"
    world.assert_whole()


def test_patch_while_an_agent_runs_is_merged_before_what_it_hands_in(world: World) -> None:
    thread = world.begun()

    def play(_turn: Turn) -> Played:
        world.patch(thread, {"mine": 1, "both": "patched"})
        return replied({"text": "x"}, state={"both": "handed in"})

    world.step(thread, play)

    assert world.events(thread) == ["start", "patch", "step"]
    assert world.snapshot(thread).get_present().state == {"mine": 1, "both": "handed in"}
    world.assert_whole()


def test_move_that_is_more_than_steering_loses_no_work(world: World, thread: ThreadId) -> None:
    def play(turn: Turn) -> Played:
        world.pause(thread)
        other = world.start(workflow=turn.snapshot.record.workflow)
        here, there = (world.tip(each) for each in (thread, other))
        assert world.store.refs.advance(f"refs/threads/{thread}", seen=here, to=there)
        return content_player(turn)

    with pytest.raises(WorkKept):
        world.step(thread, play)
    assert len(list_preserved(world.store, thread)) == 1


def test_no_change_of_many_steering_processes_is_lost(world: World, thread: ThreadId) -> None:
    def act(number: int) -> str:
        world.reopen()
        patch = {f"key{number}": number, "last": number}
        return world.patch(thread, patch, reason=f"{number}").status

    def play(turn: Turn) -> Played:
        assert at_once(STEERERS, act) == ["ready"] * STEERERS
        return content_player(turn)

    world.step(thread, play)

    assert world.events(thread) == ["start", *["patch"] * STEERERS, "step"]
    state = dict(world.snapshot(thread).get_present().state)
    assert state.pop("last") in range(STEERERS)
    assert state == {f"key{number}": number for number in range(STEERERS)}
    world.assert_whole()


def test_thread_that_moves_on_each_time_is_given_up(
    world: World, thread: ThreadId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uwf_git.commands.control.answer.MOST_TRIES", 2)
    tries: list[str] = []

    def plan(snapshot: Snapshot) -> NewCommit:
        tries.append(snapshot.commit.oid)
        world.patch(thread, {"n": len(tries)})
        return NewCommit(snapshot.record, Words("too late"), snapshot.get_present())

    with pytest.raises(HeadMoved):
        steer_thread(world.store, world.caller, thread, plan)
    assert len(set(tries)) == 2


def test_patch_of_hostile_names_is_one_line_of_the_log(world: World, thread: ThreadId) -> None:
    world.patch(thread, {"a\nUwf-Status: killed": 1, "b" * 9999: 2})

    subject = world.snapshot(thread).subject
    assert "\n" not in subject
    assert len(subject) < 300
    world.assert_whole()


def left_work(world: World) -> AtWork:
    """Start a thread whose agent has finished after its engine was killed."""
    (world.place / "runs").write_text("")
    at = begin(world, f"echo run >>runs; {BEGUN}while [ ! -e go ]; do sleep 0.02; done; {RESULT}")
    at.lose_engine()
    return at


def finish(at: AtWork) -> None:
    """Let the agent finish."""
    (at.world.place / "go").touch()
    for pid in at.living():
        wait_until_gone(pid)


def test_work_of_a_dead_engine_is_taken_up_after_a_pause_and_a_resume(world: World) -> None:
    at = left_work(world)
    world.pause(at.thread)
    world.patch(at.thread, {"seen": True})
    finish(at)
    world.resume(at.thread)
    assert world.snapshot(at.thread).turn_start != world.tip(at.thread)

    step = world.process("thread", "step", at.thread)

    _out, err = step.communicate(timeout=60)
    assert step.returncode == 0, err
    world.reopen()
    assert world.events(at.thread) == ["start", "pause", "patch", "resume", "step"]
    assert world.snapshot(at.thread).get_present().state == {"seen": True}
    assert (world.place / "runs").read_text() == "run\n"
    at.world.assert_whole()


def test_agent_of_a_dead_engine_is_waited_for_after_a_pause_and_a_resume(world: World) -> None:
    at = left_work(world)
    world.pause(at.thread)
    world.resume(at.thread)
    step = world.process("thread", "step", at.thread)
    log = step.stderr
    assert log is not None
    assert b"waiting for it" in log.readline()

    finish(at)

    assert step.wait(timeout=60) == 0
    step.communicate()
    assert (world.place / "runs").read_text() == "run\n"
    world.reopen()
    assert world.events(at.thread) == ["start", "pause", "resume", "step"]


def test_pause_that_another_clone_pushed_here_while_an_agent_runs_comes_first(
    sites: Sites, git: Git
) -> None:
    site, other, thread = sites

    def play(turn: Turn) -> Played:
        other.world.pause(thread, reason="from far away")
        git("push", "--quiet", str(site.path), f"refs/threads/{thread}", cwd=other.path)
        return content_player(turn)

    assert site.world.step(thread, play, command="mine").status == "paused"
    site.world.reopen()
    assert site.world.events(thread) == ["start", "step", "pause", "step"]
    site.world.assert_whole()


def test_pause_that_is_fetched_while_an_agent_runs_comes_first(sites: Sites) -> None:
    site, other, thread = sites

    def play(turn: Turn) -> Played:
        other.world.pause(thread)
        other.push()
        fetched = site.fetch()
        assert [each.event for each in fetched.reconciled] == ["moved"]
        assert fetched.busy == []
        return content_player(turn)

    assert site.world.step(thread, play, command="mine").status == "paused"
    site.push()
    other.fetch()
    assert site.refs("threads") == other.refs("threads")
    assert site.world.events(thread) == ["start", "step", "pause", "step"]


def test_step_that_is_fetched_while_an_agent_runs_is_not_taken_over(sites: Sites) -> None:
    site, other, thread = sites

    def play(turn: Turn) -> Played:
        other.step(thread)
        other.push()
        assert [each for each, _why in site.fetch().busy] == [thread]
        return content_player(turn)

    assert site.world.step(thread, play, command="mine").depth == 2
    assert [each.event for each in site.fetch().reconciled] == ["diverged"]
