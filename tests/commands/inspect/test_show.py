"""Where a thread stands; tests/cli/thread/test_next_line.py has every stop of the program."""

import os
from pathlib import Path
from typing import Any

import pytest
from commands.at_work import wait_until
from commands.flows import split_checks
from commands.inspect.test_context import NESTED, Golden, as_json, branch_of
from commands.step.test_record_turn import CHECKS, drive
from commands.turns import script
from commands.world import DEMO, World, fails, replied, says
from refusing import refuses
from seal import START_MS
from store.small_packs import lose

from uwf_git.commands.background import AtRest, WaitRequest, wait_for_threads
from uwf_git.commands.inspect.graph import find_steps_at
from uwf_git.commands.inspect.list import (
    Candidate,
    ListRequest,
    Summary,
    list_lately_ended,
    list_thread_rows,
    offer_remotes,
    offer_roles,
    offer_workflows,
    order_statuses,
    summarize_thread,
    tell_standing,
)
from uwf_git.commands.inspect.read import find_shared_commit, part_chains
from uwf_git.commands.inspect.show import read_stop, show_thread
from uwf_git.commands.start import StartRequest
from uwf_git.commands.turn.next_move import NextMove, advise
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.model.names import Oid, ThreadId
from uwf_git.store.threads.local_files import lock_thread, write_kill_request


def test_new_thread_stands_at_its_start(world: World, golden: Golden) -> None:
    shown = show_thread(world.store, world.begun())

    assert shown["workdir"] == str(world.place)
    golden("commands/show.json", as_json(shown | {"workdir": None}))


def test_thread_that_is_at_work_is_running(world: World) -> None:
    thread = world.begun()
    seen = []

    def play(turn: Turn) -> Played:
        seen.append(show_thread(world.store, thread))
        return says({"text": "x"})(turn)

    world.step(thread, play)

    assert seen[0]["status"] == "running"
    running = seen[0]["running"]
    assert (running["role"], running["agent"], running["driven"]) == ("writer", "nobody", False)
    assert running["pid"] == os.getpid()
    after = show_thread(world.store, thread)
    assert after["status"] == "ready"
    assert "running" not in after


def test_paused_thread_says_why_whatever_came_since(world: World) -> None:
    thread = world.begun()
    world.pause(thread, reason="Wait for Ann.")
    world.patch(thread, {"a": 1}, reason="Ann said so.")

    shown = show_thread(world.store, thread)

    assert (shown["status"], shown["pausedFrom"]) == ("paused", "ready")
    assert shown["reason"] == "Wait for Ann."


def test_default_agents_play_roles_without_one(world: World) -> None:
    world.put()
    thread = world.begin(StartRequest("demo", "Do it."))

    assert "no agent is bound to writer" in read_stop(world.store, thread).advice.text
    assert "thread answer" in read_stop(world.store, thread, default="human").advice.text
    assert "thread run" in read_stop(world.store, thread, default="x").advice.text


@pytest.mark.parametrize("verb", ["run", "step"])
def test_a_split_thread_at_work_elsewhere_is_waited_for(world: World, verb: str) -> None:
    split = split_checks(world)
    assert "its branches go on" in read_stop(world.store, split.thread).advice.text
    begun = world.place / "begun"
    agent = world.program(f"echo > '{begun}'; exec sleep 60")
    # A step holds the locks of branches only, a run that of the thread as well.
    process = world.process("thread", verb, split.thread, "--agent", agent)
    try:
        expected = f"`uwf thread wait {split.thread}` waits until it stops"
        while read_stop(world.store, split.thread).advice.text != expected:
            assert process.poll() is None
        # As of a killer who cannot end what another user runs; before it an agent would not begin.
        wait_until(begun.exists, "no agent begins")
        write_kill_request(world.store, split.thread, "")
        told = read_stop(world.store, split.thread).advice.text
        assert told == f"it is killed after this step; {expected}"
    finally:
        world.process("thread", "kill", split.thread).communicate()
        process.communicate()


@pytest.fixture
def thread(world: World) -> ThreadId:
    """Return a thread of three steps."""
    return world.stepped(*map(says, ({"text": "a"}, {"ok": False}, {"text": "b"})))


def parted(world: World, one: ThreadId, other: ThreadId) -> tuple[list[str], list[str], int]:
    """Return the roles of the steps that only each has, and the number of common steps."""
    found = part_chains(world.snapshot(one), world.snapshot(other))
    roles = [[node.payload["role"] for node in side] for side in (found.one, found.other)]
    return roles[0], roles[1], found.depth


def shared(world: World, one: ThreadId, other: ThreadId) -> Oid | None:
    tips = [world.tip(thread) for thread in (one, other)]
    found = find_shared_commit(world.store.objects, tips[0], tips[1])
    assert found == find_shared_commit(world.store.objects, tips[1], tips[0])
    return found


def test_step_that_was_taken_again_is_no_common_one(world: World, thread: ThreadId) -> None:
    forked = world.fork(thread)
    point = world.tip(thread)
    world.poke(forked)
    world.step(forked, says({"text": "better"}))

    assert parted(world, thread, forked) == (["writer"], ["writer"], 2)
    assert shared(world, thread, forked) == point


# How many steps each place of a flow took.

FLOW = """\
name: outer
root:
  type: sequential
  nodes:
    - {type: agent, agentId: writer}
    - type: loop
      maxIterations: 2
      nodes:
        - type: parallel
          merge: {"*": last}
          nodes:
            - {type: agent, agentId: writer}
            - {type: agent, agentId: reader}
    - {type: workflow, use: inner}
    - {type: agent, agentId: writer}
"""
INNER = """\
name: inner
root:
  type: sequential
  nodes:
    - {type: agent, agentId: writer}
    - {type: agent, agentId: writer}
"""


def counts(world: World, thread_at: ThreadId) -> dict[str, int]:
    return dict(find_steps_at(world.store, world.tip(thread_at), most=200).by_place)


@pytest.fixture
def thread_at(world: World) -> ThreadId:
    world.put(INNER)
    return world.begun(FLOW)


def test_a_step_that_is_redone_counts_once(world: World, thread_at: ThreadId) -> None:
    world.step(thread_at, says({}))
    world.poke(thread_at, hint="again")
    assert counts(world, thread_at) == {}

    world.step(thread_at, says({"other": 1}))
    assert counts(world, thread_at) == {"0/0": 1}


def test_nothing_is_counted_of_a_long_thread(world: World, thread_at: ThreadId) -> None:
    world.finish(thread_at, says({}))
    tip = world.tip(thread_at)
    commits = next(n for n in range(200) if find_steps_at(world.store, tip, most=n).by_place)

    assert find_steps_at(world.store, tip, most=commits - 1).by_place == {}


# A split thread as people look at it: in lists, and by itself.


def split_of(world: World, source: str = CHECKS) -> ThreadId:
    """Begin a thread, and step it until it has split."""
    thread = world.begun(source)
    while world.snapshot(thread).record.status != "split":
        world.step(thread, script())
    return thread


def fail_reviewer(turn: Turn) -> Played:
    return fails("no luck")(turn) if turn.role == "reviewer" else replied({}, usage={"turns": 1})


def listed(world: World, **asked: Any) -> list[tuple[str, str]]:
    rows = list_thread_rows(world.store, ListRequest(**asked))
    return [(row["thread"], row["status"]) for row in rows]


def test_list_has_branches_where_they_are_asked_for(world: World) -> None:
    thread = split_of(world)
    world.step(thread, fail_reviewer)
    failed, ready = branch_of(world, thread, 0), branch_of(world, thread, 1)

    assert listed(world, statuses=frozenset({"failed"})) == [(failed, "failed")]
    assert listed(world, parent=thread) == [(ready, "ready"), (failed, "failed")]
    assert listed(world, branches=True) == [(ready, "ready"), (failed, "failed"), (thread, "split")]


def test_show_has_what_each_branch_does(world: World) -> None:
    thread = split_of(world)

    begun = show_thread(world.store, thread)
    assert [row["status"] for row in begun["branches"]] == ["ready", "ready"]
    assert (begun["currentNode"], begun["currentIteration"]) == ("checks", 1)
    world.step(thread, fail_reviewer)

    document = show_thread(world.store, thread)
    # Two steps of 1.5 s, and the reviewer's try of 0.5 s.
    assert (document["usage"], document["executionTime"]) == ({"turns": 1}, 3500)
    first, second = document["branches"]
    assert (first["number"], first["label"], first["status"]) == (0, "reviewer", "failed")
    assert (first["error"], first["thread"]) == ("no luck", branch_of(world, thread, 0))
    assert (second["label"], second["status"], second["depth"]) == ("testing", "ready", 1)
    assert document["heldBy"] == [
        {"thread": first["thread"], "label": "reviewer", "status": "failed", "error": "no luck"}
    ]


@pytest.mark.parametrize("config", ["", "config: {maxSteps: 9}\n"])
def test_a_branch_that_cannot_be_read_is_shown_with_the_others(world: World, config: str) -> None:
    thread = split_of(world, CHECKS + config)
    world.step(thread, script())
    broken, other = branch_of(world, thread, 0), branch_of(world, thread, 1)
    lose(world.store, world.tip(broken))
    world.reopen()

    shown = show_thread(world.store, thread)

    assert [row["status"] for row in shown["branches"]] == ["damaged", "ready"]
    assert [(held["thread"], held["status"]) for held in shown["heldBy"]] == [(broken, "damaged")]
    told = read_stop(world.store, thread).advice
    assert not told.is_usual
    assert "is missing" in told.text
    assert "heldBy" not in show_thread(world.store, other)
    # With a limit, no step begins before it is known what the others spent.
    assert ("is missing" in read_stop(world.store, other).advice.text) == bool(config)


def test_show_of_a_branch_says_where_it_belongs(world: World) -> None:
    thread = split_of(world)
    world.step(thread, script())
    world.pause(thread)

    document = show_thread(world.store, branch_of(world, thread, 1))

    assert (document["branchOf"], document["parentThread"]) == (thread, thread)
    assert document["heldBy"] == [{"thread": thread, "status": "paused"}]
    assert (document["currentNode"], document["lastNode"]) == ("tester", "builder")


def test_what_holds_a_branch_of_branches_is_told_of_the_thread(world: World) -> None:
    thread = split_of(world, NESTED)
    play = script(one={"v": 1}, other={"v": 2})
    for _ in range(4):
        world.step(thread, play)
    first, second = (branch_of(world, thread, number) for number in range(2))
    world.pause(second)

    held = show_thread(world.store, thread)["heldBy"]
    told = advise(world.store, world.snapshot(thread), NextMove())

    assert [(each["thread"], each["status"]) for each in held] == [
        (second, "paused"),
        (first, "split"),
    ]
    assert f"`uwf thread patch {first} '{{\"v\": 1}}'` settles it" in told.text


def test_a_limit_holds_a_thread_and_its_branches_up(world: World) -> None:
    thread = split_of(world, CHECKS + "config: {maxSteps: 3}\n")
    before = show_thread(world.store, thread)
    assert (before["limitsUsed"], "heldBy" in before) == ({"maxSteps": 1}, False)
    world.step(thread, script())

    document = show_thread(world.store, thread)

    (held,) = document["heldBy"]
    assert (held["thread"], held["status"]) == (thread, "limit")
    assert "3 of 3 steps are taken" in held["error"]
    assert f"`uwf thread amend {thread} --max-steps N`" in held["hint"]
    assert document["limitsUsed"] == {"maxSteps": 3}
    branch = show_thread(world.store, branch_of(world, thread, 1))
    assert branch["heldBy"] == [held]
    assert "limitsUsed" not in branch


@pytest.mark.parametrize(("config", "held"), [("", []), ("config: {maxSteps: 3}\n", ["limit"])])
def test_what_holds_a_branch_from_around_it_is_told_to_waiting_programs(
    config: str, held: list[str], world: World
) -> None:
    thread = split_of(world, CHECKS + config)
    world.step(thread, script())
    branch = branch_of(world, thread, 1)
    rests: list[AtRest] = []

    def wait() -> list[str]:
        wait_for_threads(world.store, WaitRequest([branch]), on_rest=rests.append)
        assert rests[-1].held == show_thread(world.store, branch).get("heldBy", [])
        return [each["status"] for each in rests[-1].held if each["thread"] == thread]

    assert wait() == held
    world.pause(thread)
    assert wait() == ["paused", *held]


def test_a_limit_holds_a_thread_without_branches_up_and_waiting_programs_are_told(
    world: World,
) -> None:
    world.put()
    thread = world.begin(StartRequest("demo", "x", ("nobody",), limits={"maxSteps": 1}))
    assert "heldBy" not in show_thread(world.store, thread)
    world.step(thread)

    (held,) = show_thread(world.store, thread)["heldBy"]
    rests: list[AtRest] = []
    wait_for_threads(world.store, WaitRequest([thread]), on_rest=rests.append)

    assert (held["thread"], held["status"]) == (thread, "limit")
    assert "1 of 1 steps are taken" in held["error"]
    assert rests[0].held == [held]
    world.amend(thread, limits={"maxSteps": 2})
    world.step(thread)
    # Nobody's turn is left.
    assert "heldBy" not in show_thread(world.store, thread)


def test_branches_of_a_branch_that_cannot_be_joined_hold_all_up(world: World) -> None:
    thread = split_of(world, NESTED)
    with refuses("merge-conflict"):
        drive(world, thread, lambda turn: replied({"verdict": turn.role}))

    held = show_thread(world.store, thread)["heldBy"]

    assert [each["thread"] for each in held] == [
        branch_of(world, thread, 0), branch_of(world, thread, 1),
    ]  # fmt: skip
    assert all(f"`uwf thread patch {each['thread']} " in each["hint"] for each in held)


def test_workflows_and_their_roles_are_offered_with_what_they_are(world: World) -> None:
    world.put()
    world.put(DEMO.replace("name: demo", "name: other"))
    cwd = str(world.store.path)

    (demo,) = offer_workflows(world.store, "de", cwd=cwd)

    assert demo.word == "demo"
    assert demo.meaning in DEMO
    assert offer_roles(world.store, "w", cwd=cwd, workflow="demo") == [
        Candidate("writer", "of demo")
    ]
    (writer,) = offer_roles(world.store, "w", cwd=cwd)
    assert {"demo", "other"} == set(writer.meaning.removeprefix("of ").split(", "))
    assert offer_remotes(world.store, "") == []
    with refuses("no-such-workflow"):
        offer_roles(world.store, "", cwd=cwd, workflow="third")


def test_a_thread_that_has_split_stands_as_its_branches() -> None:
    row = {"status": "split", "branches": {"ready": 1, "running": 1}}

    assert tell_standing(row, order_statuses()) == "running"
    assert tell_standing({"status": "split"}, order_statuses()) == "split"
    assert (
        tell_standing({"status": "ready", "branches": {"failed": 1}}, order_statuses()) == "ready"
    )


def summary(world: World, thread: str) -> Summary:
    rows = list_thread_rows(world.store, ListRequest(archived=True))
    (row,) = [row for row in rows if row["thread"] == thread]
    return summarize_thread(world.store, row)


def test_who_is_at_work_is_said(world: World) -> None:
    thread = world.begun()

    with lock_thread(world.store, ThreadId(thread), since_ms=1) as lock:
        lock.say("writer", "uwf-mock")
        assert summary(world, thread).last == "writer at work"


def test_thread_changed_last_with_its_newest_attempt(world: World) -> None:
    world.caller = world.caller._replace(now_ms=lambda: START_MS)
    thread = world.begun()
    world.fail(thread)

    shown = show_thread(world.store, thread)

    assert shown["lastUpdateTime"] == shown["lastAttempt"]["timestamp"] > shown["startTime"]


def test_damaged_thread_says_its_damage(world: World) -> None:
    thread = world.begun()
    Path(f"{world.store.path}/refs/threads/{thread}").write_text("garbage\n")

    assert summary(world, thread).task is None
    assert "does not hold an object id" in (summary(world, thread).last or "")


def test_lately_ended_ones_are_found_by_their_end(world: World) -> None:
    old = world.begun()
    # Of the time of the clock; other ids of tests are a year older.
    world.new_id = lambda: ThreadId("01K742SG000000000000000001")
    ended = world.begun()
    world.kill(old)
    world.kill(ended)
    assert list_lately_ended(world.store, ListRequest(workflow="other", after_ms=0)) == []
    end_ms = list_thread_rows(world.store, ListRequest(archived=True))[0]["lastUpdateTime"]

    def found(after_ms: int) -> list[str]:
        rows = list_lately_ended(world.store, ListRequest(after_ms=after_ms))
        return [row["thread"] for row in rows]

    assert found(end_ms) == [ended]
    assert found(end_ms + 1000) == []


def test_role_of_a_person_that_is_not_described_is_waited_for(world: World) -> None:
    flow = "name: ask\ndescription: Ask.\nroot: {type: agent, agentId: judge}\n"
    thread = world.start("human", workflow=world.put(flow).workflow)
    world.step(thread)

    assert summary(world, thread).last == "judge waits for a person"
