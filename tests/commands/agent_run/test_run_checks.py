"""The checks of a role decide whether an answer is recorded."""

import json

import pytest
from commands.world import World

from uwf_git.commands.agent_run.play_agent import agent_player
from uwf_git.commands.inspect.context import get_context, render_prompt
from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.model.names import ThreadId

CHECKED = """
name: checked
roles:
  writer: {outputSchema: {type: object, required: [text]}, checks: [CHECKS]}
moderator:
  - {from: $START, to: writer}
  - {from: writer, to: $END}
"""
FLOW = """
name: checked
roles:
  writer: {outputSchema: {type: object, required: [text]}, checks: [CHECKS]}
root: {type: agent, agentId: writer}
"""
ANSWER = """printf '{"meta": {"text": "words"}, "content": "a text", "usage": {"tokens": 7}}'"""


def begin(world: World, *checks: str, agent: str = ANSWER, file: str = CHECKED) -> ThreadId:
    """Start a thread whose writer's answer is checked by *checks*."""
    listed = ", ".join(json.dumps(each) for each in checks)
    return world.begun(file.replace("CHECKS", listed), world.program(agent))


def run(world: World, thread: ThreadId) -> str:
    return world.step(thread, agent_player(None)).said


def failure(world: World, thread: ThreadId) -> TurnFailed:
    with pytest.raises(TurnFailed) as failed:
        run(world, thread)
    return failed.value


def attempt_of(world: World, thread: ThreadId) -> dict[str, object]:
    snapshot = world.snapshot(thread)
    name = snapshot.get_present().last_attempt
    assert name is not None
    payload: dict[str, object] = snapshot.get_node(name).payload
    return payload


def text_of(world: World, thread: ThreadId, name: str, payload: dict[str, object]) -> str:
    reference = payload[name]
    assert isinstance(reference, dict)
    return str(world.snapshot(thread).get_node(reference["$ref"]).payload)


@pytest.mark.parametrize("file", [CHECKED, FLOW], ids=["graph", "flow"])
def test_answer_is_recorded_if_every_check_succeeds(world: World, file: str) -> None:
    thread = begin(world, "sh -c 'cp \"$UWF_REPLY\" seen; echo fine'", "test -f seen", file=file)
    assert run(world, thread) == "a text"
    seen = json.loads((world.place / "seen").read_text())
    assert seen == {"role": "writer", "meta": {"text": "words"}, "content": "a text"}
    step = world.snapshot(thread).get_head_node().payload
    assert "fine\n\n$ test -f seen\n" in text_of(world, thread, "stderr", step)
    world.assert_whole()


@pytest.mark.parametrize("file", [CHECKED, FLOW], ids=["graph", "flow"])
def test_check_that_fails_fails_the_attempt_with_its_last_line(world: World, file: str) -> None:
    checks = ("true", "sh -c 'echo one; echo two >&2; echo three; exit 9'", "touch never")
    thread = begin(world, *checks, agent=f"echo thinking >&2; {ANSWER}", file=file)
    failed = failure(world, thread)
    assert (failed.facts["kind"], failed.facts["status"]) == ("check", "failed")
    attempt = attempt_of(world, thread)
    assert attempt["error"] == {"kind": "check", "message": "three"}
    assert attempt["exitCode"] == 9
    log = text_of(world, thread, "stderr", attempt)
    assert log.startswith("thinking\n\n$ true\n\n$ sh -c")
    assert log.endswith("\none\ntwo\nthree\n")
    assert '"text": "words"' in text_of(world, thread, "content", attempt)
    assert attempt["usage"] == {"tokens": 7}
    assert not (world.place / "never").exists()
    world.assert_whole()


def test_next_try_is_told_what_the_check_printed(world: World) -> None:
    thread = begin(world, "sh -c 'echo line 3: no such role; echo 2 problems; exit 1'")
    failure(world, thread)
    context = get_context(world.store, thread)
    assert context["lastError"] == {
        "kind": "check",
        "message": "2 problems",
        "output": "line 3: no such role\n2 problems\n",
    }
    prompt = render_prompt(context)
    assert "<output>\nline 3: no such role\n2 problems\n</output>" in prompt
    assert "<checks>\nsh -c" in prompt


def test_answer_that_does_not_fit_is_not_checked(world: World) -> None:
    thread = begin(world, "touch checked", agent="""printf '{"meta": {}}'""")
    assert failure(world, thread).facts["kind"] == "schema"
    assert not (world.place / "checked").exists()


def test_missing_program_of_a_check_fails_before_the_agent_is_paid(world: World) -> None:
    thread = begin(world, "no-such-check --fast", agent=f"touch paid; {ANSWER}")
    failed = failure(world, thread)
    assert failed.facts["kind"] == "check-program-missing"
    assert "no-such-check" in failed.message
    assert not (world.place / "paid").exists()


def test_check_may_be_what_the_agent_makes(world: World) -> None:
    make = "printf '#!/bin/sh\\nexit 0\\n' > made; chmod +x made"
    assert run(world, begin(world, "./made", agent=f"{make}; {ANSWER}")) == "a text"


def test_check_has_the_time_of_the_agent(world: World) -> None:
    thread = begin(world, "sleep 60")
    agent = json.dumps({"command": world.program(ANSWER), "timeout": 0.5})
    failed = world.fail(thread, agent_player(None), agents=(agent,))
    assert "its check sleep exceeded its time limit" in failed.message
    world.assert_whole()


def test_check_that_the_thread_has_no_time_left_for_says_how_to_give_it_more(world: World) -> None:
    thread = begin(world, "sleep 60", file=f"{CHECKED}config: {{maxExecutionTime: 500}}\n")
    failed = failure(world, thread)
    assert "of execution time that the thread had left" in failed.message
    assert "--max-execution-time" in (failed.hint or "")


def test_secrets_in_the_output_of_a_check_are_masked(world: World) -> None:
    environ = {**world.caller.environ, "API_TOKEN": "a-very-secret-value-123"}
    world.caller = world.caller._replace(environ=environ)
    thread = begin(world, "sh -c 'echo $API_TOKEN; exit 1'")
    failure(world, thread)
    attempt = attempt_of(world, thread)
    assert "very-secret" not in json.dumps(attempt)
    assert "very-secret" not in text_of(world, thread, "stderr", attempt)
