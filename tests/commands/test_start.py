"""What a page or a chat may start: workflows by name, agents that somebody has read."""

import os
from pathlib import Path

import pytest
from commands.forging import forge, messages, says
from commands.world import DEMO, World, read_thread
from refusing import refuses

from uwf_git.agents.command_line import BadCommand
from uwf_git.commands.inspect.context import get_context
from uwf_git.commands.inspect.list import ListRequest, list_thread_rows
from uwf_git.commands.inspect.show import show_thread
from uwf_git.commands.start import (
    ForkRequest,
    Here,
    Started,
    StartRequest,
    check_agents,
    find_startable,
    fork_thread,
    list_startable,
    start_thread,
)
from uwf_git.engine.turn_context import parse_context
from uwf_git.errors import Refused, UwfError
from uwf_git.model.names import ThreadId
from uwf_git.store.git.config import GitConfig
from uwf_git.store.threads.heads import NoSuchThread, ThreadExists, list_threads
from uwf_git.store.threads.local_files import workdirs_folder
from uwf_git.store.trust import is_trusted, list_trusted, trust_agents

CHOSEN = DEMO + "defaultAgent: the-default\nagentOverrides: {checker: the-override}\n"


def started(world: World, request: StartRequest) -> Started:
    return start_thread(world.store, world.caller, request, thread=world.new_id())


def bound(
    world: World, *agents: str, source: str = DEMO, default: str | None = None
) -> dict[str, str]:
    """Return the command that each role got."""
    world.put(source)
    snapshot = world.snapshot(started(world, StartRequest("demo", "x", agents, default)).thread)
    binding = snapshot.get_present().binding
    assert snapshot.get_start().payload["agentBinding"] == {
        role: {"$ref": name} for role, name in binding.items()
    }
    return {role: snapshot.get_node(name).payload["command"] for role, name in binding.items()}


def test_no_run_begins_for_a_program_that_is_not_there_trusted_or_not(world: World) -> None:
    world.put()
    world.configure("uwf.agent", "./theirs")
    with refuses("agent-missing", match="'./theirs' does not exist; it would play writer, checker"):
        world.begin(StartRequest("demo", "x", needs_agents=True))
    assert list_threads(world.store, archived=False) == []


def test_override_beats_default_beats_configuration(world: World) -> None:
    world.configure("uwf.agent", "configured")

    assert bound(world, source=CHOSEN) == {"writer": "the-default", "checker": "the-override"}
    only_override = DEMO + "agentOverrides: {checker: the-override}\n"
    assert bound(world, source=only_override) == {"writer": "configured", "checker": "the-override"}


@pytest.mark.parametrize(
    "command",
    [
        "env LANG=C agent", "/opt/a=b/agent", "./a=b", "agent --model=x", "'a=b' c", "=x",
        "sh -c 'x=1; agent \"$@\"' sh",
    ],
)  # fmt: skip
def test_command_may_hold_an_equals_sign(command: str, world: World) -> None:
    assert bound(world, command)["writer"] == command


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (StartRequest("nothing", "x"), "no-such-workflow"),
        (StartRequest("./a.yaml", "x"), "no-such-workflow"),
        (StartRequest("demo", " \n"), "empty-prompt"),
        (StartRequest("demo", "x", ("'unclosed",)), BadCommand),
        (StartRequest("demo", "x", ("writer=",)), BadCommand),
        (StartRequest("demo", "x", ("",)), BadCommand),
        (StartRequest("demo", "x", ("a\0b",)), BadCommand),
        (StartRequest("demo", "x", (), "'unclosed default"), BadCommand),
        (StartRequest("demo", "x", workdir="nowhere"), Refused),
    ],
)
def test_request_that_makes_no_sense_leaves_nothing(
    request_: StartRequest, error: str | type[Exception], world: World
) -> None:
    world.put()
    before = (Path(world.store.path) / "config").read_text()

    with refuses(error) as refused:
        started(world, request_)
    assert "-p" not in str(refused.value.hint)
    is_file = request_.workflow == "./a.yaml"
    assert ("`uwf workflow put ./a.yaml`" in str(refused.value.hint)) == is_file

    assert list_threads(world.store, archived=False) == []
    assert (Path(world.store.path) / "config").read_text() == before
    assert not list(Path(world.store.path).glob("uwf-workdirs/*"))


FLOW = """\
name: flow
description: A flow.
initialState: {code: x, kept: true}
root: {type: agent, agentId: one}
"""


@pytest.mark.parametrize(
    ("state", "told"), [({"a": "x" * 2**20}, "1,048,576"), ({"a": "\ud800"}, "lone surrogate")]
)
def test_state_that_cannot_be_stored_is_refused(
    world: World, state: dict[str, object], told: str
) -> None:
    world.put(FLOW)

    with refuses("state-refused", match=told):
        started(world, StartRequest("flow", None, state=state))

    assert list_threads(world.store, archived=False) == []


def test_flow_begins_with_its_state_what_was_given_and_its_description(world: World) -> None:
    for source, prompt in ((FLOW, "A flow."), (FLOW.replace("description: A flow.\n", ""), "flow")):
        world.put(source)
        request = StartRequest("flow", None, state={"code": "y"}, limits={"maxSteps": 3})
        begun = world.snapshot(started(world, request).thread)
        assert begun.get_present().state == {"code": "y", "kept": True}
        assert begun.get_start().payload["maxSteps"] == 3
        assert begun.get_start().payload["prompt"] == prompt


def test_typed_commands_may_run_here_from_now_on(world: World) -> None:
    world.put()
    started(world, StartRequest("demo", "x", ("writer=typed --x",)))

    world.reopen()

    assert [each.agent for each in list_trusted(world.store)] == [{"command": "typed --x"}]


def test_what_may_run_may_make_files_of_its_names_where_it_begins(world: World) -> None:
    agent, check = {"command": "date report"}, {"command": "sh look"}
    source = DEMO.replace("systemPrompt: Check.", "checks: [sh look]")
    world.put(f"{source}defaultAgent: date report\n")
    begun, named = world.place / "begun", world.place / "named"
    for place in (begun, named):
        place.mkdir()
    world.step(world.begin(StartRequest("demo", "x", workdir=str(begun))), workdir=str(named))

    for place in (begun, named, world.place.parent):
        (place / "report").touch()
        (place / "look").touch()
        is_there = place != world.place.parent
        for each in (agent, check):
            assert is_trusted(world.store, each, str(place)) == is_there


def test_workflow_of_the_user_comes_before_the_shipped_one_of_that_name(world: World) -> None:
    world.put(DEMO.replace("demo", "route", 1))

    rows = {row["name"]: row["isShipped"] for row in list_startable(world.store)}
    assert not rows["route"]
    assert rows["approve"]
    assert {"writer", "checker"} == set(find_startable(world.store, "route").workflow.roles)


@pytest.mark.parametrize("name", ["./demo.yaml", "demo.yaml", "local", "draft; rm -rf /"])
def test_file_is_no_name(world: World, name: str) -> None:
    folder = world.place / ".uwf" / "workflows"
    folder.mkdir(parents=True)
    for file in (folder / "local.yaml", world.place / "demo.yaml"):
        file.write_text(DEMO)
    with pytest.raises(UwfError):
        find_startable(world.store, name)


def test_command_plays_once_it_is_trusted(world: World) -> None:
    world.put(DEMO)
    words = ("checker=./elsewhere",)
    found = find_startable(world.store, "demo")
    here = Here(world.store, world.caller.cwd, "my-agent")

    with refuses("not-started-here", match="role checker: ./elsewhere is not trusted here"):
        check_agents(here, found, words)
    trust_agents(world.store, [{"command": "./elsewhere"}], world.caller.cwd)
    check_agents(here, found, words)
    with refuses("not-started-here", match="role writer: it has no agent") as refused:
        check_agents(here._replace(agent=None), found, words)
    assert "`uwf config set agent CMD`" in str(refused.value.hint)


def test_check_is_trusted_before_a_thread_is_made(world: World) -> None:
    world.put(DEMO.replace("systemPrompt: Check.", "checks: [./look]"))
    assert world.store.trust_file is not None
    os.unlink(world.store.trust_file)
    found = find_startable(world.store, "demo")
    here = Here(world.store, world.caller.cwd, "my-agent")

    with refuses("not-started-here", match="role checker: its check ./look is not trusted here"):
        check_agents(here, found)
    check_agents(here, found, ("checker=human",))
    trust_agents(world.store, [{"command": "./look"}], world.caller.cwd)
    check_agents(here, found)


# Threads that an agent started: depth and parentThread of seed 001.


def test_what_cannot_be_signed_leaves_no_work_directory_behind(world: World) -> None:
    thread = world.begun()
    config = GitConfig({"commit.gpgsign": ["true"], "gpg.format": ["ssh"]})
    store = world.store._replace(config=config)
    known = os.listdir(workdirs_folder(store))

    with refuses("cannot-sign"):
        fork_thread(store, world.caller, ForkRequest(thread), thread=world.new_id())
    with refuses("cannot-sign"):
        request = StartRequest("demo", "x", ("nobody",))
        start_thread(store, world.caller, request, thread=world.new_id())

    assert os.listdir(workdirs_folder(store)) == known


def test_fork_that_cannot_be_made_leaves_nothing(world: World, thread: ThreadId) -> None:
    request = ForkRequest(thread, workdir="nowhere")
    new = world.new_id()
    with refuses("not-a-directory"):
        fork_thread(world.store, world.caller, request, thread=new)
    with pytest.raises(ThreadExists):
        fork_thread(world.store, world.caller, ForkRequest(thread), thread=thread)
    assert world.store.refs.names("refs/threads/") == [thread]
    assert os.listdir(Path(world.store.path, "uwf-workdirs")) == [thread]


NOWHERE = "01J7K9M2XNPQR5VWBCDF8G3H4T"


def start_within(world: World, thread: str, *, parent: str | None = None) -> ThreadId:
    """Start a thread as a process does that the agent of *thread* runs."""
    caller = world.caller._replace(environ={**world.caller.environ, "UWF_THREAD_ID": thread})
    request = StartRequest("demo", "A part of it.", ("nobody",), parent=parent)
    return start_thread(world.store, caller, request, thread=world.new_id()).thread


def nesting_of(world: World, thread: str) -> tuple[str | None, int]:
    shown = show_thread(world.store, thread)
    return shown["parentThread"], shown["threadDepth"]


def test_thread_that_an_agent_starts_records_its_parent_and_depth(world: World) -> None:
    parent = world.begun()
    child = start_within(world, parent)
    grandchild = start_within(world, child)

    snapshot = world.snapshot(grandchild)
    assert snapshot.get_start().payload["depth"] == 2
    assert b"\nUwf-Parent-Thread: " + child.encode() + b"\n" in snapshot.commit.message
    assert nesting_of(world, parent) == (None, 0)
    assert nesting_of(world, child) == (parent, 1)
    assert nesting_of(world, grandchild) == (child, 2)
    assert "depth" not in world.snapshot(parent).get_start().payload
    world.assert_whole()


def test_parent_that_is_named_must_exist(world: World) -> None:
    parent = world.begun()

    assert nesting_of(world, start_within(world, "", parent=parent.lower())) == (parent, 1)
    with pytest.raises(NoSuchThread):
        start_within(world, parent, parent=NOWHERE)


def test_children_are_listed_ended_ones_as_well(world: World) -> None:
    parent = world.begun()
    first, second = start_within(world, parent), start_within(world, parent)
    start_within(world, second)
    for _ in range(3):
        world.step(first)

    def children(text: str) -> list[str]:
        return [row["thread"] for row in list_thread_rows(world.store, ListRequest(parent=text))]

    assert children(parent) == [second, first]
    assert children(first) == children(NOWHERE) == []
    rows = list_thread_rows(world.store, ListRequest())
    assert [row.get("parentThread") for row in rows] == [second, parent, None]
    with pytest.raises(NoSuchThread):
        children("7ZZZ")


def test_parent_is_told_to_readers_and_agents(world: World) -> None:
    parent = world.begun()
    child = start_within(world, parent)

    assert f" · by an agent of thread `{parent}`\n" in read_thread(world.store, child)
    assert "by an agent of" not in read_thread(world.store, parent)
    context = get_context(world.store, child)
    assert (context["start"]["depth"], context["start"]["parentThread"]) == (1, parent)
    start = parse_context(context).start
    assert (start.depth, start.parent_thread) == (1, parent)
    assert parse_context(get_context(world.store, parent)).start.parent_thread is None
    for name in ("depth", "parentThread"):
        # As an older uwf prints it.
        del context["start"][name]
    assert parse_context(context).start.depth == 0


def test_parent_and_depth_come_together(world: World) -> None:
    child = start_within(world, world.begun())
    parent = world.snapshot(child).record.parent_thread

    forge(world.store, f"refs/threads/{child}", {0: says(f"Uwf-Parent-Thread: {parent}\n", "")})

    assert messages(world) == ["Uwf-Parent-Thread is absent, and start.json has depth 1"]
