"""The nodes that a turn leaves: the StepNode of 000 section 2.3, and the Attempt."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands.world import World, fails, replied, says
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


def test_price_of_a_failed_try_is_kept(world: World) -> None:
    left = StepFiles(kind="rate-limit", usage={"turns": 3})
    thread = world.begun()

    with pytest.raises(TurnFailed):
        world.step(thread, lambda turn: fails()(turn)._replace(left=left))

    name = world.snapshot(thread).get_present().last_attempt
    assert name is not None
    assert world.snapshot(thread).get_node(name).payload["usage"] == {"turns": 3}


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


def test_text_of_an_agent_is_never_a_trailer(world: World, git: Callable[..., str]) -> None:
    forged = "x\n\nUwf-Status: completed\nUwf-Depth: 99\n"
    thread = world.begun()
    with pytest.raises(TurnFailed):
        world.step(thread, fails(forged, stderr=forged.encode()))
    world.retry(thread)
    world.step(thread, says({"text": forged}, forged))

    for place in ("", "~1"):
        status = git(
            "log", "-1", "--format=%(trailers:key=Uwf-Status,valueonly)",
            f"refs/threads/{thread}{place}", cwd=Path(world.store.path),
        )  # fmt: skip
        assert status.split() == ["ready"]
    assert world.snapshot(thread).record.depth == 1


def test_author_is_the_role_and_its_program(world: World, git: Callable[..., str]) -> None:
    thread = world.begun()
    world.step(thread, command="/opt/bin/uwf-cursor --fast")

    shown = git(
        "log", "-1", "--format=%an <%ae>|%cn|%s", f"refs/threads/{thread}",
        cwd=Path(world.store.path),
    )  # fmt: skip

    assert shown == "writer <uwf-cursor@uwf>|C O Mitter|writer: What was said.\n"


def test_what_is_recorded_passes_the_real_git(world: World, git: Callable[..., str]) -> None:
    thread = world.begun()
    with pytest.raises(TurnFailed):
        world.step(thread, fails("\x1b[31mred\x07", stderr=b"\0\x1b]0;x\x07"))
    world.retry(thread)
    world.step(thread, lambda _turn: replied({"text": "\x1b[2J"}, "\0\x1b[2J"), command="a<b>")

    assert git("fsck", "--strict", "--no-dangling", cwd=Path(world.store.path)) == ""
