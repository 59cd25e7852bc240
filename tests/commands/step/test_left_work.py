"""Work of a dead engine is recorded where it was begun, whatever steered the thread since."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from commands.world import World, content_player, says
from refusing import refuses

from uwf_git.agents.run_files import EXIT, PID, STDERR, STDOUT
from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.runs import describe_turn
from uwf_git.commands.step.ending import find_begun_turn
from uwf_git.commands.step.record_turn import WorkKept
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.commands.turn.turn import Played, ThreadResult, Turn
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.history import list_preserved, read_snapshot
from uwf_git.store.threads.local_files import list_run_dirs

ROUTED = """
name: routed
roles:
  writer: {outputSchema: {type: object, required: [text]}}
  checker: {outputSchema: {type: object, required: [text]}}
moderator:
  - {from: $START, to: $END, when: state.stop = true}
  - {from: $START, to: checker, when: state.check = true}
  - {from: $START, to: writer}
  - {from: writer, to: $END}
  - {from: checker, to: $END}
"""
ANSWER = b'{"meta": {"text": "paid for", "ok": true}}'


@pytest.fixture
def thread(world: World) -> ThreadId:
    return world.start(workflow=world.put(ROUTED).workflow)


class EngineDied(BaseException):
    """The engine is killed after its agent has finished."""


def leave(world: World, thread: ThreadId, *, status: str = "0", is_named: bool = True) -> None:
    """Take a step whose engine dies when its agent has finished."""

    def play(turn: Turn) -> Played:
        turn.run_dir.begin(describe_turn(turn) if is_named else "")
        run = Path(turn.run_dir.path)
        run.mkdir()
        files = {PID: b"1\n", STDOUT: ANSWER, STDERR: b"", EXIT: f"{status}\n".encode()}
        for name, content in files.items():
            (run / name).write_bytes(content)
        raise EngineDied

    with pytest.raises(EngineDied):
        world.step(thread, play)


def step(world: World, thread: ThreadId) -> ThreadResult:
    return world.step(thread, agent_player(None))


STEERED: dict[str, Callable[[World, ThreadId], object]] = {
    "to another role": lambda world, thread: world.patch(thread, {"check": True}),
    "to the end": lambda world, thread: world.patch(thread, {"stop": True}),
    "to another agent": lambda world, thread: world.amend(thread, "writer=other"),
    "to a person": lambda world, thread: world.amend(thread, "writer=human"),
}


@pytest.mark.parametrize("how", STEERED)
def test_finished_work_is_recorded_though_the_thread_was_steered(
    how: str, world: World, thread: ThreadId
) -> None:
    leave(world, thread)
    STEERED[how](world, thread)

    stepped = step(world, thread)

    assert (stepped.role, stepped.depth) == ("writer", 1)
    snapshot = world.snapshot(thread)
    assert snapshot.record.agent == "nobody"
    assert snapshot.get_head_node().payload["meta"]["text"] == "paid for"
    assert list_run_dirs(world.store, thread) == []
    world.assert_whole()


def test_work_after_which_the_thread_was_moved_is_kept_though_it_was_routed_otherwise(
    world: World, thread: ThreadId
) -> None:
    world.patch(thread, {"check": True})
    leave(world, thread)
    world.patch(thread, {"check": False})
    ref, here = f"refs/threads/{thread}", world.tip(thread)
    # As a plain `git push` into this store does, without the lock: another clone has no run.
    runs = Path(world.store.local_path("run", thread))
    aside = runs.rename(runs.with_name("aside"))
    world.step(thread, says({"text": "elsewhere"}))
    aside.rename(runs)
    assert world.store.refs.find(ref) == world.tip(thread) != here

    with pytest.raises(WorkKept) as caught:
        step(world, thread)

    (kept,) = list_preserved(world.store, thread)
    assert kept == caught.value.facts["commit"]
    assert read_snapshot(world.store, kept).record.role == "checker"


def test_kill_records_finished_work_first(world: World, thread: ThreadId) -> None:
    leave(world, thread)
    world.patch(thread, {"check": True})

    world.kill(thread, reason="enough")

    snapshot = world.snapshot(thread)
    assert (snapshot.record.status, snapshot.record.depth) == ("killed", 1)
    assert snapshot.get_head_node().payload["meta"]["text"] == "paid for"
    world.assert_whole()


def test_finished_run_that_does_not_say_whose_it_is_is_never_discarded(
    world: World, thread: ThreadId
) -> None:
    leave(world, thread, is_named=False)
    (run,) = list_run_dirs(world.store, thread)

    with refuses("other-agent-finished") as caught:
        step(world, thread)

    assert run.path in caught.value.message
    assert Path(run.path, STDOUT).read_bytes() == ANSWER


def test_other_agent_does_not_take_over_from_the_one_at_work(
    world: World, thread: ThreadId
) -> None:
    leave(world, thread)
    (run,) = list_run_dirs(world.store, thread)
    Path(run.path, EXIT).unlink()
    snapshot = world.snapshot(thread)

    def find(*agents: str) -> Turn | None:
        return find_begun_turn(world.store, world.caller, snapshot, choice=Choice(agents))

    with run.hold_alive():
        assert find() is not None
        assert find("nobody") is not None
        assert find("other") is None
    # It was lost: whoever is chosen, that is recorded first.
    assert find("other") is not None


def test_work_that_is_recorded_already_is_not_kept_again(world: World) -> None:
    thread = world.begun()
    leave(world, thread)
    runs = Path(world.store.local_path("run", thread))
    shutil.copytree(runs, runs.with_name("aside"))
    step(world, thread)
    # The engine's clock was ahead of that of the files.
    for path in runs.with_name("aside").rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    # Its engine died after it had moved the ref.
    shutil.rmtree(runs, ignore_errors=True)
    runs.with_name("aside").rename(runs)

    def play(turn: Turn) -> Played:
        return agent_player(None)(turn) if turn.role == "writer" else content_player(turn)

    assert world.step(thread, play).depth == 2

    assert list_preserved(world.store, thread) == []
    assert list_run_dirs(world.store, thread) == []


def test_work_after_which_only_the_workflow_was_changed_is_kept(
    world: World, thread: ThreadId
) -> None:
    leave(world, thread)
    other = world.put(ROUTED.replace("required: [text]", "required: []")).workflow
    world.amend(thread, workflow=other)

    with pytest.raises(WorkKept):
        step(world, thread)

    assert len(list_preserved(world.store, thread)) == 1


def test_kill_keeps_every_run_that_was_overtaken(world: World) -> None:
    thread = world.stepped()
    leave(world, thread)
    world.poke(thread)
    runs = Path(world.store.local_path("run", thread))
    aside = runs.rename(runs.with_name("aside"))
    leave(world, thread)
    for each in aside.iterdir():
        each.rename(runs / each.name)
    world.amend(thread, workflow=world.put(ROUTED).workflow)

    world.kill(thread)

    assert {
        read_snapshot(world.store, each).record.role for each in list_preserved(world.store, thread)
    } == {"writer", "checker"}
    assert list_run_dirs(world.store, thread) == []


def test_failed_run_that_was_overtaken_is_kept_with_its_output(world: World) -> None:
    thread = world.stepped()
    leave(world, thread, status="7")
    world.poke(thread)

    def play(turn: Turn) -> Played:
        return (content_player if turn.role == "writer" else agent_player(None))(turn)

    assert world.step(thread, play).role == "writer"

    (kept,) = list_preserved(world.store, thread)
    snapshot = read_snapshot(world.store, kept)
    assert (snapshot.record.event, snapshot.record.role) == ("attempt", "checker")
    world.assert_whole()


@pytest.mark.parametrize("file", [STDOUT, STDERR])
def test_run_that_is_half_gone_does_not_keep_a_thread_alive(
    file: str, world: World, thread: ThreadId
) -> None:
    leave(world, thread)
    (run,) = list_run_dirs(world.store, thread)
    Path(run.path, file).unlink()

    world.kill(thread)

    assert world.snapshot(thread).record.status == "killed"
