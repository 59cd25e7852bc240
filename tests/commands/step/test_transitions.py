"""The nodes that a turn leaves: the StepNode of 000 section 2.3, and the Attempt."""

import base64
from typing import Any

import pytest
from commands.world import World, fails, says
from seal import START_MS

from uwf_git.commands.step.record_turn import TurnFailed
from uwf_git.commands.turn.turn import StepFiles
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import Node
from uwf_git.store.objects.commit import DEFAULT_BLOB_BYTES


def node(world: World, thread: ThreadId, ref: dict[str, Any]) -> Node:
    return world.snapshot(thread).get_node(NodeHash(ref["$ref"]))


def attempted(world: World, **fields: Any) -> tuple[ThreadId, Node]:
    thread = world.begun()
    with pytest.raises(TurnFailed):
        world.step(thread, fails(**fields))
    name = world.snapshot(thread).get_present().last_attempt
    assert name is not None
    return thread, world.snapshot(thread).get_node(name)


def test_step_has_the_fields_of_the_specification(world: World) -> None:
    thread = world.begun()
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


def test_output_that_is_no_text_is_kept_byte_for_byte(world: World) -> None:
    thread = world.begun()
    world.step(thread, says({"text": "x"}, "caf\ufffd", raw=b"caf\xe9"))

    payload = world.snapshot(thread).get_head_node().payload

    assert node(world, thread, payload["content"]).payload == "caf\ufffd"
    assert base64.b64decode(node(world, thread, payload["raw"]).payload) == b"caf\xe9"


@pytest.mark.parametrize(
    "content", ["", "\n", "a\r\nb\rc", "\ufeffx", "Uwf-Status: completed", "\0", "e\u0301"]
)
def test_any_text_comes_back_as_it_was(content: str, world: World) -> None:
    thread = world.begun()
    world.step(thread, says({"text": "x"}, content))
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


def test_attempt_leaves_out_what_there_was_not(world: World) -> None:
    _, attempt = attempted(world)

    assert not {"exitCode", "content", "stderr"} & set(attempt.payload)


def test_commit_of_an_attempt_ends_with_the_end_of_the_log(world: World) -> None:
    thread, _ = attempted(world, stderr=b"x" * 5000 + b"\nthe last line\n")

    snapshot = world.snapshot(thread)

    assert snapshot.subject == "writer: attempt 1 failed: exit status 7"
    assert snapshot.body.endswith("the last line")
    assert len(snapshot.body) < 2100
