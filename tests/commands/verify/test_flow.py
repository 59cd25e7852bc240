"""Places of turns: no condition is asked, and only what some answers allow may follow."""

import pytest
from commands.flows import CHECKS
from commands.forging import messages
from commands.world import World
from store.story import THREAD

from uwf_git.commands.step.ending import end_thread
from uwf_git.commands.verify.making import Way
from uwf_git.engine.rehearsal import Rules
from uwf_git.model.event_folds import Standing
from uwf_git.model.flow import Position, parse_flow, parse_position
from uwf_git.model.names import NodeHash
from uwf_git.model.thread import ThreadState, TransitionRecord, Try
from uwf_git.store.threads.heads import get_head

FLOW = {
    "0": {"type": "sequential"},
    "0/0": {"type": "agent", "agentId": "a"},
    "0/1": {"type": "loop", "condition": "x", "maxIterations": 2},
    "0/1/0": {"type": "agent", "agentId": "b"},
    "0/2": {"type": "conditional", "condition": "x"},
    "0/2/0": {"type": "agent", "agentId": "c"},
    "0/2/e0": {"type": "agent", "agentId": "d"},
}


def stands(at: str | None) -> ThreadState:
    return ThreadState(NodeHash("A" * 13), {}, started_at=0, at=at)


def find_problem(state: ThreadState, at: Position | None) -> str | None:
    record = TransitionRecord(THREAD, "step", "ready", state.workflow, 1, state.workflow, "demo")
    rules = Rules({}, parse_flow({"nodes": FLOW}), None)
    return Way(Standing(record, state), rules, None).find_flow_problem(at)


@pytest.mark.parametrize(
    ("last", "at"),
    [
        (None, "0/0"),
        ("0/0", "0/1.1/0"),
        ("0/1.1/0", "0/1.2/0"),
        ("0/1.1/0", "0/2/0"),
        ("0/1.2/0", "0/2/e0"),
    ],
)
def test_what_some_answers_allow_is_no_problem(last: str | None, at: str) -> None:
    assert find_problem(stands(last), parse_position(at)) is None


@pytest.mark.parametrize(
    ("last", "at"),
    [
        (None, "0/1.1/0"),
        ("0/0", "0/2/0"),
        ("0/0", "0/0"),
        ("0/1.1/0", "0/0"),
        ("0/1.1/0", "0/1.1/0"),
        ("0/1.2/0", "0/1.3/0"),
        ("0/2/0", "0/2/e0"),
    ],
)
def test_a_way_back_or_past_an_agent_is_a_problem(last: str | None, at: str) -> None:
    problem = find_problem(stands(last), parse_position(at))

    assert problem == f"where no condition leads from {last or 'the beginning'}"


@pytest.mark.parametrize(
    ("last", "may_end"),
    [
        (None, False),
        ("0/0", False),
        ("0/1.1/0", False),  # one of the two agents below comes in any case
        ("0/1.2/0", False),
        ("0/2/0", True),
        ("0/2/e0", True),
        ("0", True),  # it was given up
    ],
)
def test_a_thread_ends_where_a_way_leads_to_the_end(last: str | None, *, may_end: bool) -> None:
    problem = find_problem(stands(last), None)

    told = f"where no condition leads from {last or 'the beginning'}"
    assert problem == (None if may_end else told)


def test_a_place_that_cannot_be_read_is_a_problem() -> None:
    assert find_problem(stands("x"), parse_position("0/0")) == "and now.json said x"


def test_no_place_may_follow_a_try_that_is_not_over() -> None:
    tried = stands(None)._replace(tried=Try("0/0"))

    assert find_problem(tried, parse_position("0/0")) is None
    told = find_problem(tried, parse_position("0/1.1/0"))
    assert told == "and the try at 0/0 was not over"


def test_a_thread_that_ends_before_its_flow_does_is_told(world: World) -> None:
    thread = world.begun(CHECKS)
    world.step(thread)
    head = get_head(world.store, thread)

    end_thread(world.store, world.caller, (head, world.snapshot(thread)), event="end")

    assert messages(world) == ["the thread ends, where no condition leads from 0/0"]
