"""Another agent, another limit, another workflow for a thread that is under way."""

import os
from typing import Any

import pytest
from commands.verify.test_amend import LONGER
from commands.world import DEMO, World, fails, read_thread, says
from refusing import refuses

from uwf_git.agents.command_line import BadCommand
from uwf_git.commands.control.change_rules import Amended
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.start import ForkRequest, fork_thread
from uwf_git.commands.turn.flow import LimitReached
from uwf_git.commands.turn.turn import StepFiles
from uwf_git.model.names import ThreadId
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.local_files import ThreadBusy
from uwf_git.store.trust import is_trusted, untrust_agents

SHORTER = (
    "name: shorter\nroles: {checker: }\nmoderator:\n- {from: $START, to: checker}\n"
    "- {from: checker, to: $END}\n"
)


def agents_of(world: World, thread: str) -> dict[str, str]:
    agents: dict[str, str] = show_thread(world.store, thread)["agents"]
    return agents


def test_another_agent_plays_the_role_from_now_on(world: World, thread: ThreadId) -> None:
    head = world.snapshot(thread).record.node

    amended = world.amend(thread[:26], "checker=uwf-x --kind 1", reason="It was too kind.\nReally.")

    snapshot = world.snapshot(thread)
    assert amended == Amended(
        workflow=snapshot.record.workflow,
        thread=thread,
        head=head,
        status="ready",
        name="demo",
        agents={"checker": "uwf-x --kind 1"},
        limits={},
        unbound=(),
        missing=amended.missing,
    )
    assert [roles for roles, _error in amended.missing] == [("checker",)]
    assert agents_of(world, thread) == {"writer": "nobody", "checker": "uwf-x --kind 1"}
    assert (snapshot.record.event, snapshot.record.depth) == ("amend", 0)
    assert (snapshot.subject, snapshot.body) == (
        "amend: It was too kind.",
        "It was too kind.\nReally.",
    )
    assert is_trusted(world.store, {"command": "uwf-x --kind 1"}, world.caller.cwd)
    world.assert_whole()


def test_limits_are_set_changed_and_taken_away(world: World, thread: ThreadId) -> None:
    assert world.amend(thread, limits={"maxSteps": 1, "maxCost": 2.5}).limits == {
        "maxSteps": 1,
        "maxCost": 2.5,
    }
    world.step(thread)
    with pytest.raises(LimitReached, match="1 of 1 steps are taken"):
        world.step(thread)
    assert world.amend(thread, limits={"maxSteps": None}).limits == {"maxCost": 2.5}
    assert world.snapshot(thread).subject == "amend: maxSteps is no limit"
    assert world.step(thread).depth == 2
    world.assert_whole()


@pytest.mark.parametrize(
    ("agent", "error"),
    [("nobody=x", "no-such-role"), ("writer='x", BadCommand), ("'x", BadCommand)],
)
def test_agent_that_makes_no_sense_changes_nothing(
    agent: str, error: str | type[Exception], world: World, thread: ThreadId
) -> None:
    before = world.tip(thread)

    with refuses(error):
        world.amend(thread, "checker=good", agent)

    assert world.tip(thread) == before
    assert not is_trusted(world.store, {"command": "good"}, world.caller.cwd)


def test_step_of_another_process_ends_well_after_it_was_amended(world: World) -> None:
    world.put()
    began, go = world.place / "began", world.place / "go"
    os.mkfifo(began)
    os.mkfifo(go)
    program = world.program(
        f'echo >{began}; read -r word <{go}; echo \'{{"meta": {{"text": "x"}}}}\''
    )
    thread = world.start(program)

    with world.process("thread", "step", thread) as stepping:
        began.read_text()
        world.amend(thread, "writer=another", limits={"maxSteps": 1})
        with pytest.raises(ThreadBusy):
            world.amend(thread, workflow="demo")
        go.write_text("on\n")
        assert stepping.wait(60) == 0

    assert world.events(thread) == ["start", "amend", "step"]
    assert agents_of(world, thread)["writer"] == "another"
    with pytest.raises(LimitReached):
        world.step(thread)
    world.assert_whole()


def test_agent_bound_to_the_role_of_a_person_ends_the_wait(world: World, thread: ThreadId) -> None:
    world.amend(thread, "checker=human")
    world.step(thread)
    assert world.step(thread).status == "waiting"

    assert world.amend(thread, "writer=somebody").status == "waiting"
    assert world.amend(thread, "checker=uwf-x").status == "ready"

    assert world.step(thread).role == "checker"
    world.assert_whole()


def test_person_who_is_given_again_is_still_waited_for(world: World) -> None:
    thread = world.begun(DEMO, "human")
    assert world.step(thread).status == "waiting"

    with refuses("already-so"):
        world.amend(thread, "writer=human")

    amended = world.amend(thread, "writer=human", "checker=uwf-x")

    assert (amended.status, amended.agents) == ("waiting", {"checker": "uwf-x"})
    assert world.snapshot(thread).subject == "amend: agent of checker"
    world.assert_whole()


@pytest.mark.parametrize("agent", ["another", "nobody"])
def test_limit_of_an_agent_is_not_waited_for_when_an_agent_is_given(
    world: World, agent: str
) -> None:
    thread = world.begun()
    limited = fails("slow down", left=StepFiles(kind="rate-limited", reset_at=10**15))
    with pytest.raises(Exception, match="slow down"):
        world.step(thread, limited)
    assert world.snapshot(thread).record.status == "waiting"

    assert world.amend(thread, f"writer={agent}").status == "ready"

    assert world.step(thread).role == "writer"
    world.assert_whole()


def test_thread_goes_on_with_another_workflow(world: World) -> None:
    thread = world.stepped()
    other = world.put(LONGER).workflow

    amended = world.amend(thread, workflow="longer", reason="It needs an editor.")

    record = world.snapshot(thread).record
    assert (amended.workflow, amended.name, amended.unbound) == (other, "longer", ("editor",))
    assert (record.workflow, record.workflow_name) == (other, "longer")
    world.amend(thread, "editor=e")
    roles = [world.step(thread, says({"ok": True})).role for _ in range(3)]
    assert roles == ["checker", "editor", None]
    world.assert_whole()


def test_roles_that_come_with_a_workflow_are_bound_as_at_a_start(world: World) -> None:
    thread = world.begun()
    world.put(LONGER + "agentOverrides: {editor: the-override, writer: not-for-this-thread}\n")

    amended = world.amend(thread, "checker=typed", workflow="longer", default_agent="unused")

    assert amended.agents == {"editor": "the-override", "checker": "typed"}
    assert agents_of(world, thread) == {
        "writer": "nobody",
        "checker": "typed",
        "editor": "the-override",
    }
    assert not is_trusted(world.store, {"command": "unused"}, world.caller.cwd)
    assert world.snapshot(thread).subject.endswith("; agent of editor, checker")
    world.assert_whole()


def test_unbound_role_gets_the_default_of_this_process(world: World, thread: ThreadId) -> None:
    world.put(LONGER)

    amended = world.amend(thread, workflow="longer", default_agent="of-the-process")

    assert (amended.agents, amended.unbound) == ({"editor": "of-the-process"}, ())
    assert is_trusted(world.store, {"command": "of-the-process"}, world.caller.cwd)


def test_position_has_to_be_there(world: World, thread: ThreadId) -> None:
    world.put(SHORTER)
    world.step(thread)
    before = world.tip(thread)

    with refuses("position-gone") as caught:
        world.amend(thread, "typed", workflow="shorter")

    assert f"thread {thread} cannot stand at writer: workflow shorter" in caught.value.message
    assert "its roles are checker" in (caught.value.hint or "")
    assert world.tip(thread) == before
    assert not is_trusted(world.store, {"command": "typed"}, world.caller.cwd)
    # As the hint says.
    fork = world.fork(thread, at="0")
    assert world.amend(fork, workflow="shorter").status == "ready"
    assert world.step(fork, says({})).role == "checker"
    world.assert_whole()


@pytest.mark.parametrize(("agent", "told"), [("human", "waits for writer"), ("x", "stands at wr")])
def test_a_table_becomes_containers_before_its_first_step_only(
    agent: str, told: str, world: World
) -> None:
    thread = world.begun(DEMO, agent)
    world.step(thread)
    world.put("name: flow\nroot: {type: sequential, nodes: [{type: agent, agentId: writer}]}\n")

    with refuses("wrong-status", match=told) as caught:
        world.amend(thread, workflow="flow")

    assert f"`uwf thread fork {thread} --at 0`" in (caught.value.hint or "")
    assert world.amend(world.fork(thread, at="0"), workflow="flow").status == "ready"


@pytest.mark.parametrize(
    ("agents", "asked"),
    [
        (("checker=c",), {}),
        ((), {"workflow": "demo"}),
        ((), {"limits": {"maxSteps": 7}}),
        ((), {"limits": {"maxCost": None}}),
        (("checker=c",), {"workflow": "demo", "limits": {"maxSteps": 7}, "reason": "again"}),
    ],
)
def test_what_is_so_already_is_refused(
    world: World, thread: ThreadId, agents: tuple[str, ...], asked: dict[str, Any]
) -> None:
    world.amend(thread, "checker=c", limits={"maxSteps": 7})
    before = get_head(world.store, thread)

    with refuses("already-so", match="already"):
        world.amend(thread, *agents, **asked)

    assert get_head(world.store, thread) == before


def test_command_that_may_not_run_here_yet_is_allowed_by_giving_it_again(world: World) -> None:
    thread = world.begun()
    world.amend(thread, "checker=c")
    untrust_agents(world.store, command="c")

    world.amend(thread, "checker=c")

    assert is_trusted(world.store, {"command": "c"}, world.caller.cwd)


def test_time_is_written_as_people_say_it(world: World, thread: ThreadId) -> None:
    world.amend(thread, limits={"maxExecutionTime": 5_400_000, "maxTokens": 10})

    said = "amend: maxExecutionTime is 1 h 30 min; maxTokens is 10"
    assert world.snapshot(thread).subject == said
    assert "- **maxExecutionTime**: 1 h 30 min\n" in read_thread(world.store, thread)


def settings_of(world: World, thread: str) -> dict[str, Any]:
    settings: dict[str, Any] = show_thread(world.store, thread)["agentSettings"]
    return settings


def test_agent_keeps_the_settings_that_are_not_named(world: World) -> None:
    thread = world.begun(DEMO, '{"command": "uwf-x", "timeout": 60, "env": {"A": "1", "B": "2"}}')

    world.amend(thread, "checker=uwf-y")
    world.amend(thread, 'writer={"timeout": null, "protocol": "flags", "env": {"A": null}}')

    assert agents_of(world, thread) == {"writer": "uwf-x", "checker": "uwf-y"}
    assert settings_of(world, thread) == {
        "writer": {"protocol": "flags", "env": {"B": "2"}},
        "checker": {"timeout": 60, "env": {"A": "1", "B": "2"}},
    }
    changed = {"command": "uwf-x", "protocol": "flags", "env": {"B": "2"}}
    assert is_trusted(world.store, changed, str(world.place))
    world.assert_whole()
    with refuses("already-so"):
        world.amend(thread, 'checker={"timeout": 60}')


def test_settings_stay_through_a_fork_and_another_workflow(world: World) -> None:
    world.put(LONGER)
    thread = world.begun(DEMO, '{"command": "uwf-x", "timeout": 60}')
    world.step(thread)
    fork = world.new_id()
    fork_thread(world.store, world.caller, ForkRequest(thread), thread=fork)

    world.amend(fork, 'editor={"command": "uwf-e", "timeout": 1}', workflow="longer")

    assert settings_of(world, fork) == {
        "writer": {"timeout": 60},
        "checker": {"timeout": 60},
        "editor": {"timeout": 1},
    }
    world.assert_whole()


def test_settings_for_a_role_without_an_agent_need_a_command(world: World) -> None:
    thread = world.begun(DEMO, "writer=w")

    with refuses("command-unnamed", match="role checker has no agent"):
        world.amend(thread, '{"timeout": 1}')
    with refuses("bad-agent", match="--agent checker is no agent: timout: unknown key"):
        world.amend(thread, 'checker={"timout": null}')
