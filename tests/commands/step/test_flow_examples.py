"""The six flows of seed 004, unchanged: which agents act, in which order, with which input."""

from pathlib import Path

from commands.turns import drive
from commands.world import World, replied

from uwf_git.commands.start import StartRequest
from uwf_git.commands.turn.flow import fill_input
from uwf_git.commands.turn.turn import Played, Turn
from uwf_git.commands.workflow.build import put_workflow
from uwf_git.model.names import ThreadId

FLOWS = Path(__file__).parents[2] / "flows"


def begin(world: World, name: str, **state: object) -> ThreadId:
    """Put the file as it is, and start a thread without a prompt."""
    path = FLOWS / f"{name}.yaml"
    put_workflow(world.store, world.caller, path.read_bytes(), path=str(path))
    return world.begin(StartRequest(name, None, ("nobody",), state=state or None))


def test_level_4_has_a_loop_in_a_loop(world: World) -> None:
    """The end of the inner loop does not end the outer one, as it did in adk-python#1376."""
    thread = begin(world, "level-4")
    statuses = iter(["BAD", "DONE", "DONE"])
    left = iter([1, 0])

    def play(turn: Turn) -> Played:
        match turn.role:
            case "planner":
                return replied({"featuresRemaining": 2})
            case "feature-picker":
                return replied({"featuresRemaining": next(left), "currentFeatureStatus": "NEW"})
            case "reviewer":
                return replied({"currentFeatureStatus": next(statuses)})
        return replied({})

    driven, roles = drive(world, thread, play)

    pass_1 = ["feature-picker", "coder", "reviewer", "coder", "reviewer"]
    assert driven.stopped == "end"
    assert roles == ["planner", *pass_1, "feature-picker", "coder", "reviewer"]
    assert world.snapshot(thread).get_present().at == "0/1.2/1.1/0/1"
    world.assert_sound(thread)


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
    world.assert_sound(thread)


def test_for_each_feature_tests_and_documents_what_was_approved(world: World) -> None:
    thread = begin(world, "for-each-feature")

    def play(turn: Turn) -> Played:
        match turn.role:
            case "planner":
                return replied({}, '["login", "logout"]', state={"currentFeatureIndex": 0})
            case "reviewer":
                return replied({"currentFeatureStatus": "APPROVED"})
            case "doc-writer":
                index = turn.present.state["currentFeatureIndex"]
                return replied({"currentFeatureIndex": index + 1, "currentFeatureStatus": "NEW"})
        return replied({})

    driven, roles = drive(world, thread, play)

    feature = ["coder", "reviewer", "tester", "doc-writer", "parallel: 2 completed"]
    assert driven.stopped == "end"
    assert roles == ["planner", *feature, *feature]
    state = world.snapshot(thread).get_present().state
    assert (state["featureList"], state["currentFeatureIndex"]) == (["login", "logout"], 2)
    world.assert_sound(thread)
