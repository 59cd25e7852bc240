"""What a commit is made from, where that is not what it should be."""

from typing import Any, Literal

import pytest
from commands.flows import CHECKS, begin_outer
from commands.forging import forge, holds, messages, place
from commands.verify.flipping import check, parts_of, put_over
from commands.verify.test_each_event import list_recorded
from commands.verify.test_each_event import store as store  # noqa: PLC0414 (a fixture)
from commands.world import DEMO, World
from store.story import THREAD

from uwf_git.commands.control.answer import build_signalled, record_built
from uwf_git.commands.step.ending import end_thread
from uwf_git.commands.turn.choose_agent import build_agent
from uwf_git.commands.verify.history import Location
from uwf_git.commands.verify.making import CannotBe, Making, Way, list_differences
from uwf_git.commands.verify.nodes import TreeChecks
from uwf_git.engine.flow_move import Rules
from uwf_git.model.builtin import STEP, TEXT, TRACE, reference
from uwf_git.model.event_folds import Cause, Standing
from uwf_git.model.flow import Position, parse_flow, parse_position
from uwf_git.model.names import NodeHash, ThreadId
from uwf_git.model.node import build_node
from uwf_git.model.thread import ThreadState, TransitionRecord, Try, build_signal
from uwf_git.store.store import Store
from uwf_git.store.threads.heads import get_head
from uwf_git.store.threads.history import (
    NewCommit,
    Snapshot,
    build_next,
    read_snapshot,
    read_standing,
)


@pytest.mark.parametrize(
    "content", [b"no node\n", b"---\ntype: 7T9THEK9TEVCY\ntimestamp: 0\n---\n"]
)
def test_start_that_is_no_start_is_told(store: Store, content: bytes) -> None:
    made = list_recorded(store.path)["verdict"]
    parts = parts_of(store, made.oid, file="start.json")

    found = [each.message for each in check(store, made, *put_over(parts, "start.json", content))]

    assert found[0] == "start.json is another than in the commit before"


@pytest.mark.parametrize(
    ("event", "cause", "told"),
    [
        ("step", None, "step has no Uwf-Cause"),
        ("pause", None, "pause has no Uwf-Cause"),
        ("step", "0000000000000", "which is not in the commit"),
        ("pause", "itself", "which is no Signal"),
        ("end", "itself", "end has an Uwf-Cause"),
    ],
)
def test_node_that_the_event_cannot_be_about_is_told(
    store: Store, event: str, cause: str | None, told: str
) -> None:
    view, record = read_snapshot(store, list_recorded(store.path)["step"].oid)[1:]
    name = record.cause if cause == "itself" else cause
    record = record._replace(event=event, cause=None if name is None else NodeHash(name))  # type: ignore[arg-type]  # a word
    trees = TreeChecks(store)
    nodes = trees.folders.get(bytes.fromhex(view.tree.decode()))[b"nodes"][1]
    making = Making(trees, Location("", view.oid, nodes), view, record, b"", None)

    with pytest.raises(CannotBe, match=told):
        making.make()


# Places of turns: no condition is asked, and only what some answers allow may follow.


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
    assert find_problem(tried, parse_position("0/1.1/0")) == "and the try at 0/0 was not over"


def test_a_thread_that_ends_before_its_flow_does_is_told(world: World) -> None:
    thread = world.stepped(source=CHECKS)
    head = get_head(world.store, thread)

    end_thread(world.store, world.caller, (head, world.snapshot(thread)), event="end")

    assert messages(world) == ["the thread ends, where no condition leads from 0/0"]


# Events that writers refuse.


def test_a_turn_in_place_of_a_whole_workflow_is_told(world: World) -> None:
    wait = Cause(role="builder", text="Builds.")
    thread = begin_outer(world)
    record_built(
        world.store, world.caller, thread, lambda at: build_next(read_standing(at), "wait", wait)
    )

    told = "Uwf-Role is 'builder', which a workflow plays: the thread splits there"
    assert messages(world) == [told]


@pytest.mark.parametrize(
    ("event", "command", "more", "told"),
    [
        ("answer", "/x/human --really", {}, "answer is by '/x/human --really', and only an answer"),
        ("answer", " human ", {"durationMs": 5}, "has a durationMs, and counts for no limit"),
        ("step", " human ", {}, "step is by ' human ', and only an answer is by 'human'"),
        ("step", "x", {"branches": []}, "has branches, and is no join"),
        ("step", "x", {"state": {"x": "x" * 2**20}}, "the result cannot be applied: the state"),
    ],
)
def test_a_turn_that_no_agent_or_person_takes_is_told(
    world: World, event: Literal["answer", "step"], command: str, more: dict[str, Any], told: str
) -> None:
    is_flow = "state" in more
    role, at = ("coder", "0/0") if is_flow else ("writer", None)
    thread = world.begun(CHECKS if is_flow else DEMO, "human")
    if event == "answer":
        world.step(thread)

    def build(tip: Snapshot) -> NewCommit:
        text, agent = (
            build_node(TEXT, "x", timestamp=1),
            build_agent({"command": command}, timestamp=1),
        )
        payload = {
            "role": role,
            "meta": {"text": "x"},
            "content": reference(text.hash),
            "agent": reference(agent.hash),
            "prev": reference(tip.record.node),
            **more,
        }
        step = build_node(STEP, payload, timestamp=1)
        cause = Cause(step, role, "human", text="x", at=at)
        return build_next(read_standing(tip), event, cause, nodes=(step, text, agent))

    record_built(world.store, world.caller, thread, build)

    (found,) = messages(world)
    assert told in found


@pytest.mark.parametrize(
    ("patch", "told"), [({"iteration": 5}, "iteration is"), ({"x": "x" * 2**20}, "the state would")]
)
def test_a_patch_that_a_flow_cannot_take_is_told(
    world: World, patch: dict[str, object], told: str
) -> None:
    thread = world.begun(CHECKS)
    signal = build_signal("patch", timestamp=1, patch=patch)
    record_built(
        world.store, world.caller, thread, lambda at: build_signalled(at, Cause(), signal=signal)
    )

    (found,) = messages(world)
    assert found.startswith(f"the patch cannot be applied: {told}")


def test_a_thread_without_a_built_in_schema_is_told(world: World, thread: ThreadId) -> None:
    forge(world.store, f"refs/threads/{thread}", {0: holds(world.store, place(TRACE), None)})

    assert messages(world) == [f"the commit has no built-in schema Trace, {TRACE}"]


# How a document differs from the one that was made again.


def test_each_difference_is_told_by_its_path() -> None:
    right = {"depth": 0, "usage": {"n": 1}, "gone": 1}
    told = {"usage": {"n": True}, "depth": False, "more": None}

    assert list(list_differences("", told, right)) == [
        "now.json says depth false, and the history gives 0",
        "now.json says usage.n true, and the history gives 1",
        "now.json says gone nothing, and the history gives 1",
    ]
