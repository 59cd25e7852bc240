import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands.world import World

from uwf_git.commands.control.steer import pause_thread
from uwf_git.commands.events.commit_events import announce_events
from uwf_git.store.git.config import set_config
from uwf_git.store.trust import describe_command, trust_agents

Heard = Callable[[], list[dict[str, Any]]]


def listen(world: World, command: str) -> None:
    set_config(os.path.join(world.store.path, "config"), "uwf.onEvent", command)
    listener = describe_command("uwf.onEvent", command)
    trust_agents(world.store, [listener], world.store.path)
    world.reopen()


@pytest.fixture
def heard(world: World) -> Heard:
    """Set a listener, and return a function that returns what it got."""
    listener = world.program('cat >>"$0.heard"', name="listener")
    listen(world, listener)
    path = Path(f"{listener}.heard")

    def read() -> list[dict[str, Any]]:
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return [json.loads(line) for line in lines]

    return read


def announce(world: World, **more: Any) -> str | None:
    return announce_events(world.store, world.caller.environ, **more)


def test_each_event_is_announced_once_and_in_order(world: World, heard: Heard) -> None:
    thread = world.begun()
    world.step(thread)

    assert announce(world) is None

    told = heard()
    assert [event["type"] for event in told] == [
        "workflow:start",
        "node:enter",
        "node:exit",
        "workflow:progress",
    ]
    assert {event["taskId"] for event in told} == {thread}
    assert announce(world) is None
    assert heard() == []


def test_transitions_of_other_processes_are_not_announced(world: World, heard: Heard) -> None:
    thread = world.begun()
    announce(world)
    heard()
    mine = world.store
    world.reopen()
    world.step(thread)

    assert announce_events(mine, os.environ) is None
    assert heard() == []


def test_key_is_masked(world: World, heard: Heard) -> None:
    thread = world.begun()
    environ = {**world.caller.environ, "MY_TOKEN": "Tr0ub4dor"}
    pause_thread(world.store, world.caller, thread, reason="sk-" + "x1" * 10 + " Tr0ub4dor")

    assert announce_events(world.store, environ) is None
    assert heard()[-1]["reason"] == "[masked] [masked]"


def test_listener_that_fails_is_one_line(world: World) -> None:
    listen(world, world.program("echo nobody home >&2; exit 7"))
    world.step(world.begun())

    problem = announce(world) or ""

    assert problem.endswith("/agent ended with status 7: nobody home (and 3 more like it)")
    assert problem.startswith("uwf.onEvent: ")


@pytest.mark.parametrize("command", ["/nowhere/listener", "'unclosed"])
def test_listener_that_cannot_be_run_is_one_line(world: World, command: str) -> None:
    set_config(os.path.join(world.store.path, "config"), "uwf.onEvent", command)
    listener = describe_command("uwf.onEvent", command)
    trust_agents(world.store, [listener], world.store.path)
    world.reopen()
    world.step(world.begun())

    problem = announce(world) or ""

    assert problem.startswith("uwf.onEvent: ")
    assert "\n" not in problem


def test_listener_that_hangs_is_ended_and_not_asked_again(world: World) -> None:
    listen(world, world.program('echo x >>"$0.heard"; sleep 60; :'))
    world.step(world.begun())

    problem = announce(world, timeout_s=0.3) or ""

    assert problem.endswith("was killed after 0.3 s; 3 more events were not announced")
    assert (world.place / "agent.heard").read_text() == "x\n"


def test_listener_that_git_config_set_in_the_store_waits_for_the_user(world: World) -> None:
    listener = world.program('cat >>"$0.heard"', name="listener")
    heard = Path(f"{listener}.heard")
    set_config(os.path.join(world.store.path, "config"), "uwf.onEvent", listener)
    world.reopen()
    world.begun()

    problem = announce(world)

    assert problem is not None
    assert f"this store's config names a command that is not trusted: {listener};" in problem
    assert not heard.exists()
    # An agent of the same words is no listener.
    trust_agents(world.store, [{"command": listener}], world.store.path)
    world.start()
    assert announce(world) is not None
    listen(world, listener)
    world.start()
    assert announce(world) is None
    assert heard.exists()


def test_listener_of_the_user_s_own_git_config_runs(world: World, git: Callable[..., str]) -> None:
    listener = world.program('cat >>"$0.heard"', name="listener")
    git("config", "--global", "uwf.onEvent", listener, cwd=world.place)
    world.reopen()
    world.begun()

    assert announce(world) is None
    assert Path(f"{listener}.heard").exists()
