"""The six flows of seed 004, unchanged: which agents act, in which order, with which input."""

from pathlib import Path

from commands.flow_runs import assert_sound, drive
from commands.world import World, replied

from uwf_git.commands.lifecycle.start import StartRequest, start_thread
from uwf_git.commands.turn.flow import fill_input
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.workflow.build import put_workflow
from uwf_git.model.names import ThreadId

FLOWS = Path(__file__).parents[2] / "flows"


def begin(world: World, name: str, **state: object) -> ThreadId:
    """Put the file as it is, and start a thread without a prompt."""
    path = FLOWS / f"{name}.yaml"
    put_workflow(world.store, world.caller, path.read_bytes(), path=str(path))
    request = StartRequest(name, None, ("nobody",), state=state or None)
    return start_thread(world.store, world.caller, request, thread=world.new_id()).thread


def test_the_coder_review_loop_runs_until_the_reviewer_approves(world: World) -> None:
    thread = begin(world, "coder-review-loop")
    told: list[tuple[str, object, object]] = []
    statuses = iter(["NEEDS_REVISION", "APPROVED"])

    def play(turn: Turn) -> Played:
        state = turn.present.state
        assert turn.place is not None
        said = fill_input(turn.snapshot, turn.present, turn.place)
        told.append((turn.role, turn.timeout_s, said))
        match turn.role:
            case "coder":
                return replied({}, f"code {turn.present.visits.get('coder', 0) + 1}")
            case "reviewer":
                return replied({}, f"read {said}")
            case "tester":
                return replied({}, f"ran {said}")
            case "decision-maker":
                return replied({}, f"{state['reviewResult']}, {state['testResult']}")
        return replied({"reviewStatus": next(statuses), "reviewFeedback": "handle errors"})

    driven, roles = drive(world, thread, play)

    rest = ["quality-checks: 2 completed", "decision-maker", "state-updater"]
    assert driven.stopped == "end"
    assert roles == ["coder", "reviewer", "tester", *rest] * 2
    asked = "需求: 实现用户登录功能\nReview 反馈: "
    assert told[:5] == [
        ("coder", 120.0, f"{asked}首次编写\n"),
        ("reviewer", None, "code 1"),
        ("tester", None, "code 1"),
        ("decision-maker", None, "Review: read code 1\nTests: ran code 1\n"),
        ("state-updater", None, "read code 1, ran code 1"),
    ]
    assert told[5] == ("coder", 120.0, f"{asked}handle errors\n")
    snapshot = world.snapshot(thread)
    present = snapshot.get_present()
    assert present.state["finalDecision"] == "read code 2, ran code 2"
    assert present.state["parallel_1"] == {"testResult": "ran code 2"}
    assert present.limits == {"maxExecutionTime": 600000}
    assert snapshot.get_start().payload["prompt"].startswith("后台循环")
    assert_sound(world, thread)
