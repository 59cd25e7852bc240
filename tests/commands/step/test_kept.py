"""What a step keeps besides its result: the end of its agent's log, and named variables."""

from typing import cast

import pytest
from commands.world import World

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.inspect.show import view_step
from uwf_git.model.builtin import AGENT_EXEC_CONTEXT
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node

ANSWER = """echo '{"meta": {"text": "x", "ok": true}}'"""


def stepped(world: World, script: str) -> tuple[ThreadId, Node]:
    """Take a step by a program; return its node."""
    thread = world.start(world.program(script + ANSWER), workflow=world.put().workflow)
    world.step(thread, agent_player(None))
    world.assert_whole()
    return thread, world.snapshot(thread).get_head_node()


def referred(world: World, thread: ThreadId, step: Node, field: str) -> Node:
    return world.snapshot(thread).get_node(NodeHash(step.payload[field]["$ref"]))


def test_only_the_end_of_a_log_is_kept_as_the_setting_says(world: World) -> None:
    world.configure("uwf.keepLogs", "10")

    thread, step = stepped(world, "echo 'a long beginning, the end' >&2; ")

    assert referred(world, thread, step, "stderr").payload == ", the end\n"


def test_secret_that_the_limit_cuts_in_two_is_not_kept_by_half(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-" + "0123456789" * 4
    monkeypatch.setitem(cast("dict[str, str]", world.caller.environ), "MY_API_KEY", secret)
    # The last 64 KiB begin in the middle of the secret.
    script = f"echo {secret} >&2; yes 'a line' | head -c {65536 - 20} >&2; "

    thread, step = stepped(world, script)

    log = referred(world, thread, step, "stderr").payload
    assert log.startswith("a line\n")
    assert "0123456789" not in log


def test_variables_that_the_setting_names_are_kept_masked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = cast("dict[str, str]", world.caller.environ)
    monkeypatch.setitem(environ, "MY_API_KEY", "sk-0123456789")
    monkeypatch.setitem(environ, "MY_LEVEL", "high")
    world.configure("uwf.recordEnv", "MY_* UWF_ROLE")

    thread, step = stepped(world, "")

    kept = referred(world, thread, step, "execContext")
    assert kept.type == AGENT_EXEC_CONTEXT
    assert kept.payload == {
        "env": {"MY_API_KEY": "[masked]", "MY_LEVEL": "high", "UWF_ROLE": "writer"}
    }
    assert view_step(world.snapshot(thread), step)["execContext"] == kept.hash
