import pytest
from commands.world import World, fails, says

from uwf_git.commands.inspect.step_view import (
    get_command,
    get_text,
    view_attempt,
    view_error,
    view_step,
    view_steps,
)
from uwf_git.commands.step.step_thread import TurnFailed
from uwf_git.commands.turn.turn import StepFiles


def test_step_is_shown_with_what_it_points_at(world: World) -> None:
    thread = world.begun()
    world.step(thread, says({"text": "x"}, "the text", usage={"tokens": 3}))
    snapshot = world.snapshot(thread)

    view = view_step(snapshot, snapshot.get_head_node())

    assert list(view) == [
        "hash", "role", "meta", "content", "agent", "timestamp", "startedAt", "durationMs", "usage",
    ]  # fmt: skip
    assert (view["hash"], view["content"], view["agent"]) == (
        snapshot.record.node,
        "the text",
        "nobody",
    )


def test_step_shows_how_its_meta_was_found_and_where_the_rest_is(world: World) -> None:
    thread = world.begun()
    left = StepFiles(prompt="the prompt", trace={"events": []})
    reply = says({"text": "x"}, rung="native", session="s1")
    world.step(thread, lambda turn: reply(turn)._replace(left=left))
    snapshot = world.snapshot(thread)

    view = view_step(snapshot, snapshot.get_head_node())

    assert (view["rung"], view["session"]) == ("native", "s1")
    assert snapshot.get_node(view["prompt"]).payload == "the prompt"
    assert snapshot.get_node(view["trace"]).payload == {"events": []}


def test_steps_come_oldest_first_without_the_start(world: World) -> None:
    thread = world.begun()
    assert view_steps(world.snapshot(thread)) == []
    world.step(thread)
    world.step(thread)

    assert [view["role"] for view in view_steps(world.snapshot(thread))] == ["writer", "checker"]


def test_failed_try_is_shown_with_all_that_it_printed(world: World) -> None:
    thread = world.begun()
    with pytest.raises(TurnFailed):
        world.step(thread, fails(exit_code=7, stdout=b"half", stderr=b"why"))
    snapshot = world.snapshot(thread)
    name = snapshot.get_present().last_attempt

    view = view_attempt(snapshot, name)

    assert view is not None
    assert (view["exitCode"], view["content"], view["stderr"]) == (7, "half", "why")
    assert view_error(snapshot, name) == {"kind": "exited", "message": "exit status 7"}


def test_missing_fields_are_not_shown(world: World) -> None:
    snapshot = world.snapshot(world.begun())

    assert view_error(snapshot, None) is None
    assert view_attempt(snapshot, None) is None
    assert (get_text(snapshot, None), get_command(snapshot, None)) == ("", "")
