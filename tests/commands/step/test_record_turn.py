"""Threads of flows: sequences, loops, conditions, branches, and what their results change."""

import base64
from typing import Any

import pytest
from cas_nodes import TWINS
from commands import turns
from commands.turns import script
from commands.world import World, fails, replied, says
from refusing import refuses
from seal import START_MS

from uwf_git.commands.drive_thread import Driven
from uwf_git.commands.inspect.context import load_thread_context
from uwf_git.commands.turn.turn import Played, Player, StepFiles, Turn
from uwf_git.model.names import NodeHash, Oid, ThreadId
from uwf_git.model.node import Node
from uwf_git.store.objects.commit import DEFAULT_BLOB_BYTES
from uwf_git.store.threads.history import read_snapshot, walk_history

LOOP = """\
name: turns
initialState: {ok: false}
root:
  type: loop
  condition: state.ok !== true
  maxIterations: 5
  nodes:
    - {type: agent, agentId: coder}
    - {type: agent, agentId: reviewer}
"""

CHECKS = """\
name: checks
root:
  type: sequential
  nodes:
    - {type: agent, agentId: coder, output: code}
    - type: parallel
      name: checks
      nodes:
        - {type: agent, agentId: reviewer, output: review}
        - type: sequential
          name: testing
          nodes:
            - {type: agent, agentId: builder, output: build}
            - {type: agent, agentId: tester, output: tests}
    - {type: agent, agentId: closer, output: done}
"""

ITEMS = """\
name: items
initialState: {files: [a, b, c]}
root:
  type: sequential
  nodes:
    - type: map
      name: each
      over: state.files
      as: file
      output: reports
      nodes:
        - {type: agent, agentId: reader, input: "read ${file}"}
    - {type: agent, agentId: writer}
"""


PLANS = """\
name: plans
description: A pass for each.
initialState: {tries: 3, limits: {ms: null}}
root:
  type: sequential
  nodes:
    - {type: agent, agentId: planner}
    - type: loop
      over: state.plans
      as: plan
      retries: ${state.tries - 1}
      nodes:
        - {type: agent, agentId: coder, input: "${state.plan.file}", timeout: "${state.limits.ms}"}
        - type: parallel
          nodes:
            - {type: agent, agentId: tester, input: "test ${plan.file} in ${iteration}"}
"""


def test_a_template_without_a_fit_number_fails_before_the_agent_is_paid(world: World) -> None:
    thread = world.begun(PLANS.replace("tries: 3", "tries: 0.5"))
    world.step(thread, script(planner={"plans": [{"file": "000.md"}]}))
    with refuses("flow-value", match="and no whole number"):
        world.step(thread, script())


TURNED = """\
name: turned
initialState: {items: [1, 2]}
root:
  type: map
  name: outer
  over: state.items
  output: results
  nodes:
    - type: loop
      maxIterations: 2
      nodes:
        - type: parallel
          name: inner
          merge: {seen: append}
          nodes:
            - {type: agent, agentId: one, input: "${item} in ${iteration}"}
            - {type: agent, agentId: other}
        - {type: agent, agentId: last}
"""


def test_branches_in_a_loop_in_an_item_split_in_every_pass(world: World) -> None:
    thread = world.begun(TURNED)
    given: list[object] = []

    def play(turn: Turn) -> Played:
        state = turn.present.state
        if turn.role == "one":
            given.append(load_thread_context(turn.store.path, turn.thread, role=turn.role)["input"])
        return replied({"seen": [*state.get("seen", []), turn.role]} if turn.role != "last" else {})

    assert drive(world, thread, play).stopped == "end"
    assert sorted(map(str, given)) == ["1 in 0", "1 in 1", "2 in 0", "2 in 1"]
    first, *_ = (read_snapshot(world.store, oid) for oid in find_join(world, thread)[1:])
    present = first.get_present()
    assert present.state["seen"] == ["one", "other"] * 2
    assert present.visits == {"one": 2, "other": 2, "last": 2}
    world.assert_sound(thread)


def find_join(world: World, thread: ThreadId) -> tuple[Oid, ...]:
    """Return the parents of the newest join of a thread."""
    history = walk_history(world.store, world.tip(thread))
    return next(each.commit.parents for each in history if each.record.event == "join")


def drive(world: World, thread: ThreadId, play: Player, **options: Any) -> Driven:
    return turns.drive(world, thread, play, jobs=4, **options)[0]


# The nodes that a turn leaves: the StepNode of 000 section 2.3, and the Attempt.


def node(world: World, thread: ThreadId, ref: dict[str, Any]) -> Node:
    return world.snapshot(thread).get_node(NodeHash(ref["$ref"]))


def attempted(world: World, **fields: Any) -> tuple[ThreadId, Node]:
    thread = world.begun()
    world.fail(thread, fails(**fields))
    name = world.snapshot(thread).get_present().last_attempt
    assert name is not None
    return thread, world.snapshot(thread).get_node(name)


def test_step_has_the_fields_of_the_specification(world: World, thread: ThreadId) -> None:
    start = world.snapshot(thread).record.node
    world.step(thread, says({"text": "x"}, "the text"))

    step = world.snapshot(thread).get_head_node()

    assert set(step.payload) == {
        "role", "meta", "content", "agent", "prev", "startedAt", "durationMs",
    }  # fmt: skip
    assert (step.payload["role"], step.payload["meta"]) == ("writer", {"text": "x"})
    assert node(world, thread, step.payload["content"]).payload == "the text"
    assert node(world, thread, step.payload["agent"]).payload == {"command": "nobody"}
    assert step.payload["prev"] == {"$ref": start}
    assert (step.payload["startedAt"], step.payload["durationMs"]) == (START_MS, 1500)
    assert step.timestamp == START_MS + 1500


def test_answer_with_the_name_of_another_text_is_a_failed_attempt(world: World) -> None:
    thread = world.stepped(says({"text": "x"}, TWINS[0]))
    told = world.fail(thread, says({"ok": True}, TWINS[1], usage={"inputTokens": 5}))

    name = world.snapshot(thread).get_present().last_attempt
    assert name is not None
    payload = world.snapshot(thread).get_node(name).payload
    assert payload["error"]["kind"] == told.facts["kind"] == "node-collision"
    assert payload["usage"] == {"inputTokens": 5}
    assert "content" not in payload
    assert str(told.hint).startswith("its output is not kept; `uwf thread step ")
    assert "has its output" not in str(told.hint)
    world.step(thread, says({"ok": True}, "another word"))
    world.assert_sound(thread)


def test_output_that_is_no_text_is_kept_byte_for_byte(world: World) -> None:
    thread = world.stepped(says({"text": "x"}, "caf\ufffd", raw=b"caf\xe9"))

    payload = world.snapshot(thread).get_head_node().payload

    assert node(world, thread, payload["content"]).payload == "caf\ufffd"
    assert base64.b64decode(node(world, thread, payload["raw"]).payload) == b"caf\xe9"


@pytest.mark.parametrize(
    "content", ["", "\n", "a\r\nb\rc", "\ufeffx", "Uwf-Status: completed", "\0", "e\u0301"]
)
def test_any_text_comes_back_as_it_was(content: str, world: World) -> None:
    thread = world.stepped(says({"text": "x"}, content))
    world.reopen()

    payload = world.snapshot(thread).get_head_node().payload

    assert node(world, thread, payload["content"]).payload == content


def test_attempt_says_what_was_wrong_and_what_was_printed(world: World) -> None:
    thread, attempt = attempted(
        world, message="exit status 7", exit_code=7, stdout=b"half", stderr=b"no \xff key"
    )

    payload = attempt.payload
    assert payload["error"] == {"kind": "exited", "message": "exit status 7"}
    assert (payload["role"], payload["attempt"], payload["exitCode"]) == ("writer", 1, 7)
    assert node(world, thread, payload["content"]).payload == "half"
    assert node(world, thread, payload["stderr"]).payload == "no \ufffd key"


def test_attempt_is_never_too_large_to_be_shared(world: World) -> None:
    thread, attempt = attempted(world, stdout=b"\xff" * 12_000_000)

    said = node(world, thread, attempt.payload["content"]).payload
    assert len(said.encode()) < DEFAULT_BLOB_BYTES


def test_what_an_agent_left_before_it_failed_is_kept(world: World) -> None:
    trace = {"events": [], "badLines": 1}
    left = StepFiles(prompt="# You are writer", trace=trace, reset_at=4_000_000_000_000)
    thread, attempt = attempted(world, left=left)

    assert node(world, thread, attempt.payload["prompt"]).payload == "# You are writer"
    assert node(world, thread, attempt.payload["trace"]).payload == trace
    assert attempt.payload["resetAt"] == 4_000_000_000_000
