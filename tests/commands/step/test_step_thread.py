"""One step: its result, its traces in the store, and its lock."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands.agent_run.test_run_checks import CHECKED
from commands.at_work import AtWork, at_work, end_all, is_alive, pids, wait_until_gone
from commands.drive.test_drive_branches import wide
from commands.flows import CHECKS, plays, split_checks, split_files
from commands.turns import branches, drive, log, script
from commands.world import DEMO, World, content_player, fails, says
from fresh_store import fresh_store
from store.small_packs import lose

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.agent_run.runs import find_running
from uwf_git.commands.caller import Caller
from uwf_git.commands.control.append import AppendRequest, append_to_thread
from uwf_git.commands.inspect.logs import LogRequest, read_logs
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.start import StartRequest, start_thread
from uwf_git.commands.step.record_turn import WorkKept
from uwf_git.commands.step.step_thread import StepRequest, settle_branches, step_thread
from uwf_git.commands.turn.branches import WrongStatus
from uwf_git.commands.turn.choose_agent import Choice
from uwf_git.commands.turn.flow import LimitReached
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.workflow.build import put_workflow
from uwf_git.errors import StoreDamaged
from uwf_git.model.definition.definition import InvalidWorkflow
from uwf_git.model.names import ThreadId
from uwf_git.store.objects.commit import CommitDraft, write_commit
from uwf_git.store.objects.objects import get_tree
from uwf_git.store.packing import MOST_PACKS
from uwf_git.store.threads.history import list_preserved
from uwf_git.store.threads.local_files import ThreadBusy, get_run_dir, lock_drive, lock_stop


@pytest.mark.parametrize(
    "usage", [{"tokens": "many"}, {"tokens": [1]}, {"tokens": -1}, {"tokens": 1e308}, {"": {}}]
)
def test_strange_usage_never_stops_a_thread(usage: dict[str, Any], world: World) -> None:
    thread = world.stepped(
        *(says(meta, usage=usage) for meta in ({"text": "x"}, {"ok": False}, {"text": "y"}))
    )

    assert world.snapshot(thread).record.depth == 3


@pytest.mark.parametrize("lock", [lock_drive, lock_stop])
def test_no_step_is_taken_while_another_process_drives_or_ends_the_thread(
    lock: Any, world: World, thread: ThreadId
) -> None:
    with lock(world.store, thread, since_ms=0), pytest.raises(ThreadBusy):
        world.step(thread)

    assert world.step(thread).role == "writer"


def test_work_of_a_thread_that_is_removed_meanwhile_is_kept(world: World, thread: ThreadId) -> None:
    def play(turn: Turn) -> Played:
        # As `git update-ref -d` does.
        assert world.store.refs.delete(f"refs/threads/{thread}", seen=turn.snapshot.commit.oid)
        return content_player(turn)

    with pytest.raises(WorkKept):
        world.step(thread, play)

    assert len(list_preserved(world.store, thread)) == 1


@pytest.mark.parametrize(("version", "told"), [("1", "has format 1"), ("3", "newer")])
def test_thread_of_another_version_of_the_format_is_not_touched(
    world: World, thread: ThreadId, version: str, told: str
) -> None:
    snapshot = world.snapshot(thread)
    message = snapshot.commit.message.replace(b"Format: 2", f"Format: {version}".encode())
    draft = CommitDraft(get_tree(world.store.objects, snapshot.commit.tree), (), message, [])
    other = write_commit(world.store.objects, draft, world.caller.signing(world.store))
    assert world.store.refs.advance(f"refs/threads/{thread}", seen=snapshot.commit.oid, to=other)

    with pytest.raises(StoreDamaged, match=told):
        world.step(thread)

    assert world.store.refs.find(f"refs/threads/{thread}") == other


def test_same_calls_give_the_same_commits_anywhere(clock: Any, thread_ids: Any) -> None:
    def tip() -> str | None:
        at = iter(range(1_760_000_000_000, 1_760_000_100_000, 1000))
        store, caller = fresh_store(), Caller(lambda: next(at), {}, "/")
        put_workflow(store, caller, DEMO.encode())
        thread = ThreadId("01J00000000000000000000001")
        start_thread(store, caller, StartRequest("demo", "x"), thread=thread)
        step_thread(store, caller, StepRequest(thread, content_player, Choice(("library",))))
        return store.refs.find(f"refs/threads/{thread}")

    assert tip() == tip() is not None


# Branches as steps see them: held by their thread, joined when all have ended.


TOLERANT = CHECKS.replace(
    "name: checks\n      nodes", "name: checks\n      onError: continue\n      nodes"
)


def test_branches_of_a_paused_thread_are_not_given_up(world: World) -> None:
    split = split_checks(world, TOLERANT)
    with pytest.raises(Exception, match="exit status 7"):
        world.step(split.children[0], fails())
    world.pause(split.thread)

    assert not settle_branches(world.store, world.caller, split.thread)

    world.resume(split.thread)
    assert settle_branches(world.store, world.caller, split.thread)


def test_a_step_gives_up_the_branches_that_failed_in_it(world: World) -> None:
    split = split_checks(world, TOLERANT)

    assert world.step(split.thread, fails()).status == "ready"
    given_up = show_thread(world.store, split.thread)["givenUp"]
    assert [each["error"] for each in given_up] == ["exit status 7", "exit status 7"]
    # They are those of the newest step that counts.
    world.step(split.thread)
    assert "givenUp" not in show_thread(world.store, split.thread)
    world.poke(split.thread)
    assert show_thread(world.store, split.thread)["givenUp"] == given_up
    lose(world.store, world.tip(given_up[0]["thread"]))
    assert "givenUp" not in show_thread(world.store, split.thread)


def test_a_step_of_branches_at_once_keeps_the_most_steps(world: World) -> None:
    thread = world.stepped(plays, source=wide(4, passes=1) + "config: {maxSteps: 2}\n")
    two = threading.Barrier(2)

    def play(turn: Turn) -> Played:
        two.wait(30)
        return plays(turn)

    stepped = world.step(thread, play)

    assert [each.result is not None for each in stepped.branches] == [True, True, False, False]
    assert all(isinstance(each.error, LimitReached) for each in stepped.branches[2:])


def test_a_step_of_many_branches_leaves_few_packs(world: World) -> None:
    split_files(world, 40).step()

    assert len(list(Path(world.store.path, "objects", "pack").glob("*.pack"))) <= MOST_PACKS + 1


# A check that a dead engine left is ended and runs again; one that is at work can be stopped.

AGENT = """echo run >>runs; printf '{"meta": {"text": "words"}, "content": "a text"}'"""
# The first one hangs, and every other one succeeds.
CHECK = """\
echo check >>checks
test -e begun && exit 0
echo thinking about it
echo $$ >>pids
echo begun >begun
while :; do sleep 0.05; done
"""


@pytest.fixture
def at(world: World) -> Iterator[AtWork]:
    """Return a thread whose check is under way in another process."""
    world.program(CHECK, name="check")
    yield at_work(world, world.begun(CHECKED.replace("CHECKS", "./check"), world.program(AGENT)))
    end_all(world)


def lines(world: World, name: str) -> list[str]:
    return (world.place / name).read_text().splitlines()


def test_engine_that_is_killed_has_the_check_run_again_and_the_agent_once(at: AtWork) -> None:
    at.lose_engine()
    [orphan] = pids(at.world)
    assert is_alive(orphan)

    assert at.world.step(at.thread, agent_player(None)).said == "a text"

    assert not is_alive(orphan)
    assert (lines(at.world, "runs"), lines(at.world, "checks")) == (["run"], ["check"] * 2)
    at.world.assert_whole()
    assert not os.path.exists(get_run_dir(at.world.store, at.thread, at.snapshot().commit.oid).path)


def test_check_at_work_is_seen_and_stopped(at: AtWork) -> None:
    running = find_running(at.world.store, at.thread)
    assert running is not None
    assert running.group is not None
    assert ("writer, check check", ["thinking about it"]) in [
        (piece.source, piece.lines) for piece in read_logs(at.world.store, LogRequest(at.thread))
    ]

    assert at.world.pause(at.thread, reason="wrong", now=True).status == "paused"
    status, err = at.finish()
    assert (status, "its check was stopped: wrong" in err) == (130, True)
    wait_until_gone(pids(at.world)[0])
    assert at.snapshot().record.event == "pause"
    at.world.resume(at.thread, reason="")
    # The checks run again, and the agent does not.
    assert at.world.step(at.thread, agent_player(None)).said == "a text"
    assert (lines(at.world, "runs"), lines(at.world, "checks")) == (["run"], ["check"] * 2)
    assert at.snapshot().get_present().attempts == 0
    at.world.assert_whole()


def test_thread_that_is_killed_keeps_the_answer_unchecked(at: AtWork) -> None:
    at.world.kill(at.thread, reason="enough")

    at.finish()
    assert at.snapshot().record.status == "killed"
    assert at.attempt()["error"]["kind"] == "interrupted"
    assert '"text": "words"' in at.attempt()["content"]
    at.world.assert_whole()


# Roles of graphs that whole workflows play.

INNER = """\
name: inner
description: A graph.
roles:
  digger:
    description: Digs.
    outputSchema: {type: object, properties: {depth: {type: number}}, required: [depth]}
moderator:
  - {from: $START, to: digger}
  - {from: digger, to: digger, condition: meta.depth < 2}
  - {from: digger, to: $END}
"""

MIDDLE = """\
name: middle
description: A flow with a graph inside.
initialState: {own: true}
root:
  type: sequential
  nodes:
    - {type: agent, agentId: planner, output: plan}
    - {type: workflow, use: inner, input: "dig ${state.plan}", output: hole}
    - {type: agent, agentId: closer}
"""

OUTER = """\
name: outer
description: A graph with a flow inside.
roles:
  asker: {description: Asks.}
  builder:
    description: Builds.
    workflow: middle
    outputSchema: {type: object, properties: {good: {type: boolean}}, required: [good]}
moderator:
  - {from: $START, to: asker}
  - {from: asker, to: builder}
  - {from: builder, to: builder, condition: meta.good = false and iteration < 3}
  - {from: builder, to: $END}
"""


def begun(world: World) -> ThreadId:
    for source in (INNER, MIDDLE):
        world.put(source)
    return world.begun(OUTER)


def test_a_graph_runs_inside_a_flow_inside_a_graph(world: World) -> None:
    thread = begun(world)
    play = script(
        planner="deep",
        digger=[{"depth": 1}, {"depth": 2}, {"depth": 3}],
        closer=[{"good": False}, {"good": True}],
    )

    driven, done = drive(world, thread, play)

    inner = "workflow: 1 completed"
    assert driven.stopped == "end"
    assert done == [
        "asker",
        *["planner", "digger", "digger", inner, "closer", "builder: 1 completed"],
        *["planner", "digger", inner, "closer", "builder: 1 completed"],
    ]
    assert log(world, thread)[1:] == [
        "step ready",
        "split builder split",
        "join builder ready",
        "split builder split",
        "join builder ready",
        "end completed",
    ]
    snapshot = world.snapshot(thread)
    head = snapshot.get_head_node().payload
    assert (head["role"], head["meta"]) == ("builder", {"good": True})
    assert snapshot.get_present().visits["builder"] == 2
    middle = branches(world, thread)[0]
    assert world.snapshot(middle).get_present().state["hole"] == {"depth": 3}
    assert world.snapshot(middle).get_present().state["own"] is True
    assert world.snapshot(branches(world, middle)[0]).get_start().payload["prompt"] == "dig deep"
    world.assert_sound(thread)


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("workflow: middle", "workflow: nowhere", 7, "nowhere"),
        ("workflow: middle", "workflow: outer", 7, "cannot contain itself"),
        ("workflow: middle", "workflow: middle\n    systemPrompt: x", 8, "is for an agent"),
        ("workflow: middle", "workflow: [1]", 7, "must be text"),
    ],
)
def test_a_workflow_that_cannot_play_is_told_with_its_line(
    world: World, old: str, new: str, line: int, told: str
) -> None:
    world.put(INNER)
    world.put(MIDDLE)
    with pytest.raises(InvalidWorkflow) as caught:
        world.put(OUTER.replace(old, new))

    problems = [(each.line, each.message) for each in caught.value.problems]
    assert any(where == line and told in message for where, message in problems), problems


def test_a_workflow_does_not_contain_itself_through_another(world: World) -> None:
    begun(world)

    with pytest.raises(InvalidWorkflow, match="cannot contain itself: outer contains it"):
        world.put(INNER.replace("    description: Digs.", "    workflow: outer"))


def test_the_role_that_is_being_played_cannot_be_replaced(world: World) -> None:
    thread = begun(world)
    world.step(thread, script())
    world.step(thread, script())
    addition = b"roles: {builder: {description: Builds alone.}}"

    with pytest.raises(WrongStatus, match="builder"):
        append_to_thread(world.store, world.caller, AppendRequest(thread, addition))
    addition = b"roles: {asker: {description: Asks again.}}"
    append_to_thread(world.store, world.caller, AppendRequest(thread, addition))
