"""What a page or a chat may start: workflows by name, agents that somebody has read."""

from collections.abc import Callable
from pathlib import Path

import pytest
from commands.world import DEMO, World
from refusing import refuses

from uwf_git.agents.command_line import BadCommand
from uwf_git.commands.start import (
    Here,
    Started,
    StartRequest,
    check_agents,
    find_startable,
    list_startable,
    start_thread,
)
from uwf_git.errors import Refused, UwfError
from uwf_git.store.threads.heads import list_threads
from uwf_git.store.trust import list_trusted, trust_agents

CHOSEN = DEMO + "defaultAgent: the-default\nagentOverrides: {checker: the-override}\n"


def started(world: World, request: StartRequest) -> Started:
    return start_thread(world.store, world.caller, request, thread=world.new_id())


def bound(
    world: World, *agents: str, source: str = DEMO, default: str | None = None
) -> dict[str, str]:
    """Return the command that each role got."""
    world.put(source)
    thread = started(world, StartRequest("demo", "x", agents, default)).thread
    snapshot = world.snapshot(thread)
    binding = snapshot.get_present().binding
    assert snapshot.get_start().payload["agentBinding"] == {
        role: {"$ref": name} for role, name in binding.items()
    }
    return {role: snapshot.get_node(name).payload["command"] for role, name in binding.items()}


def test_thread_begins_and_nothing_runs(world: World) -> None:
    put = world.put()

    begun = started(world, StartRequest("demo", "Do it.\nThoroughly.", ("nobody",)))

    snapshot = world.snapshot(begun.thread)
    assert (begun.workflow, begun.unbound) == (put.workflow, ())
    assert (snapshot.record.event, snapshot.record.status, snapshot.record.depth) == (
        "start",
        "ready",
        0,
    )
    assert snapshot.get_start().payload["prompt"] == "Do it.\nThoroughly."
    assert snapshot.get_start().payload["workflow"] == {"$ref": put.workflow}
    assert snapshot.subject == "start: Do it."
    assert snapshot.commit.parents == ()


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


def test_thread_carries_all_that_it_reaches(
    world: World, git: Callable[..., str], tmp_path: Path
) -> None:
    thread = world.begun()
    other = tmp_path / "other.git"
    git("init", "-q", "--bare", str(other), cwd=tmp_path)
    git("fetch", "-q", world.store.path, f"refs/threads/{thread}:refs/threads/{thread}", cwd=other)

    assert git("fsck", "--strict", cwd=other) == ""
    assert git("ls-tree", "-r", "--name-only", f"refs/threads/{thread}", cwd=other).count(
        "nodes/"
    ) > len(world.snapshot(thread).get_present().binding)


def test_typed_commands_may_run_here_from_now_on(world: World) -> None:
    world.put()
    started(world, StartRequest("demo", "x", ("writer=typed --x",)))

    world.reopen()

    assert [each.agent for each in list_trusted(world.store)] == [{"command": "typed --x"}]


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
    with refuses("not-started-here", match="role writer: it has no agent"):
        check_agents(here._replace(agent=None), found, words)
