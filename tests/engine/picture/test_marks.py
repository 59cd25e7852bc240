import pytest
from engine.picture.subjects import SEED_FLOWS, read_subject

from uwf_git.engine.picture.plan import Mark, Progress, mark_places, mark_roles, mark_split
from uwf_git.model.flow import Flow, parse_position
from uwf_git.model.thread import STATUSES
from uwf_git.model.workflow import END, START

RAN = {"writer": 2, "checker": 1}


@pytest.mark.parametrize(
    ("progress", "mark"),
    [
        (Progress("ready", {}, "writer"), Mark("now", "▶ next", "is next")),
        (
            Progress("ready", RAN, "writer", is_at_work=True),
            Mark("now", "▶ at work · ✓ 2", "is at work; it ran twice"),
        ),
        (
            Progress("ready", {}, "writer", attempts=1),
            Mark("failed", "▶ try 2", "is next after 1 try"),
        ),
        (
            Progress("ready", {}, "writer", attempts=1, is_at_work=True),
            Mark("now", "▶ try 2", "is at work after 1 try"),
        ),
        (Progress("waiting", {}, "writer"), Mark("waits", "? person", "waits for a person")),
        (
            Progress("waiting", {}, "writer", waits_for_limit=True),
            Mark("waits", "? limit", "waits until a limit ends"),
        ),
        (
            Progress("failed", RAN, "writer", attempts=3),
            Mark("failed", "✗ 3 tries · ✓ 2", "failed after 3 tries; it ran twice"),
        ),
        (
            Progress("paused", {}, "writer"),
            Mark("paused", "‖ paused", "is next, and the thread is paused"),
        ),
        (
            Progress("killed", RAN, last="writer"),
            Mark("stopped", "✗ killed · ✓ 2", "was here when the thread was killed; it ran twice"),
        ),
    ],
)
def test_the_place_of_a_thread_says_how_it_stands(progress: Progress, mark: Mark) -> None:
    assert mark_roles(progress)["writer"] == mark


def test_roles_say_how_often_they_ran() -> None:
    marks = mark_roles(Progress("completed", {"a": 1, "b": 2, "c": 3}))
    assert [(marks[role].badge, marks[role].words) for role in "abc"] == [
        ("✓ 1", "ran once"),
        ("✓ 2", "ran twice"),
        ("✓ 3", "ran 3 times"),
    ]
    assert marks[END] == Mark("done", "✓ completed", "the thread is completed")


def test_an_end_that_is_still_to_be_recorded_is_next() -> None:
    assert mark_roles(Progress("ready", RAN, END, last="checker"))[END].badge == "▶ next"


def test_a_thread_killed_before_its_first_step_stands_at_the_start() -> None:
    assert mark_roles(Progress("killed", {}))[START].state == "stopped"


def test_nothing_is_said_of_a_turn_that_nobody_knows() -> None:
    assert mark_roles(Progress("ready", {})) == {}


@pytest.mark.parametrize("status", STATUSES)
def test_each_status_has_words(status: str) -> None:
    for turn in (None, "writer", END):
        for mark in mark_roles(Progress(status, RAN, turn, attempts=2)).values():
            assert mark.badge[0] in "✓▶?✗‖"
            assert mark.words


def flow_of(name: str) -> Flow:
    moves = read_subject(next(path for path in SEED_FLOWS if path.stem == name)).moves
    assert isinstance(moves, Flow)
    return moves


def test_a_position_marks_its_place_and_the_passes_of_the_loops_around() -> None:
    progress = Progress("ready", {"planner": 1, "coder": 6}, "reviewer")
    marks = mark_places(flow_of("level-4"), progress, parse_position("0/1.3/1.2/0/1"))
    assert {place: mark.badge for place, mark in marks.items()} == {
        "0/0": "✓ 1",
        "0/1": "▶ pass 3",
        "0/1/1": "▶ pass 2",
        "0/1/1/0/0": "✓ 6",
        "0/1/1/0/1": "▶ next",
    }


def test_a_completed_flow_marks_its_end() -> None:
    marks = mark_places(flow_of("level-1"), Progress("completed", {"worker": 5}), None)
    assert {place: mark.badge for place, mark in marks.items()} == {
        "0/0": "✓ 5",
        END: "✓ completed",
    }


def test_steps_of_a_role_at_several_places_are_counted_at_none() -> None:
    flow = flow_of("level-2")
    nodes = {
        place: node._replace(fields={**node.fields, "agentId": "x"})
        for place, node in flow.nodes.items()
    }
    assert mark_places(Flow(nodes), Progress("ready", {"x": 2}), None) == {}


def test_a_branch_marks_only_what_is_in_it() -> None:
    flow = flow_of("coder-review-loop")
    progress = Progress("failed", {"coder": 3, "reviewer": 1}, "reviewer", attempts=2)
    marks = mark_places(flow, progress, parse_position("0.3/0/1/0"), within="0/0/1/0")
    assert {place: mark.badge for place, mark in marks.items()} == {"0/0/1/0": "✗ 2 tries · ✓ 1"}
    done = mark_places(flow, Progress("completed", {"tester": 1}), None, within="0/0/1/1")
    assert {place: mark.badge for place, mark in done.items()} == {"0/0/1/1": "✓ 1"}


def test_branches_are_counted_where_several_are_at_one_place() -> None:
    done, now = Mark("done", "✓ 1", "ran once"), Mark("now", "▶ next", "is next")
    marks = mark_split("0", 1, [{"0/0": done, "0/1": now}, {"0/0": now}, {"0/0": now}])
    assert marks == {
        "0": Mark("now", "▶ 1 of 3 ended", "has split, and 1 of 3 branches have ended"),
        "0/0": Mark("now", "▶ 2 · ✓ 1", "2 of its branches: is next; 1 of its branches: ran once"),
        "0/1": now,
    }
