"""What a branch comes to that ends with verified work, or with branches of its own."""

from typing import Any

import pytest
from commands.turns import drive, script
from commands.world import World
from refusing import refuses

from uwf_git.commands.workflow.history import list_history
from uwf_git.model.flow import Flow

AGENT = "{type: agent, agentId: %s}"
WORK = (
    "{type: agent, agentId: work, onError: continue, verifiedBy: {agentId: judge, when: meta.ok}}"
)
PAIR = f"{{type: parallel, nodes: [{AGENT % 'one'}, {AGENT % 'two'}]}}"
MAP = "{type: map, over: state.%s, as: %s, output: r, nodes: [%s]}"
SEQUENCE = "{type: sequential, nodes: [%s, %s]}"
USE = "{type: workflow, use: inner, onError: continue, output: r}"
PLAY: dict[str, Any] = {"work": {"file": "a"}, "judge": {"ok": True}, "one": {"o": 1}, "two": "Hm."}
BOTH = {"o": 1, "oneOutput": {"o": 1}, "twoOutput": "Hm."}
FILE = {"file": "a"}


def flow(root: str, name: str = "outer") -> str:
    return f"name: {name}\ninitialState: {{xs: [1], ys: [[1, 2], [3]]}}\nroot: {root}\n"


TABLE = """\
name: inner
roles: {r: {workflow: %s, outputSchema: true}}
moderator: [{from: $START, to: r}, {from: r, to: $END}]
"""
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "verified work": (WORK, MAP % ("xs", "x", WORK), {"r": [FILE]}),
    "verified work of a workflow": (WORK, USE, {**FILE, "r": FILE}),
    "a map in a map": (
        PAIR,
        MAP % ("ys", "y", MAP % ("y", "x", AGENT % "work")),
        {"r": [{"r": [FILE, FILE]}, {"r": [FILE]}]},
    ),
    "a parallel": (
        PAIR,
        MAP % ("xs", "x", f"{AGENT % 'work'}, {PAIR}"),
        {"r": [{**FILE, "workOutput": FILE, **BOTH}]},
    ),
    "a parallel of a workflow": (PAIR, USE, {**BOTH, "r": BOTH}),
    "a parallel of a workflow in an item": (PAIR, MAP % ("xs", "x", USE), {"r": [BOTH]}),
    "a text of a workflow in an item": (AGENT % "two", MAP % ("xs", "x", USE), {"r": ["Hm."]}),
    "an answer that was there": (
        PAIR,
        SEQUENCE % (AGENT % "one", MAP % ("xs", "x", PAIR)),
        {"o": 1, "oneOutput": {"o": 1}, "r": [{"o": 1, "twoOutput": "Hm."}]},
    ),
    "an output that was there": (
        PAIR,
        SEQUENCE % (MAP % ("none", "x", PAIR), MAP % ("xs", "x", MAP % ("none", "z", PAIR))),
        {"r": [{"r": []}]},
    ),
    "a map without items": (PAIR, MAP % ("xs", "x", MAP % ("none", "z", PAIR)), {"r": [{"r": []}]}),
}


def run(world: World, inner: str, root: str, **answers: Any) -> dict[str, Any]:
    """Return what a thread sets in its state, whose workflow may use one that is *inner*."""
    world.put(flow(inner, "inner"))
    thread = world.begun(flow(root).replace("{xs", "{none: [], xs"))
    drive(world, thread, script(**PLAY | answers))
    world.assert_sound(thread)
    state = world.snapshot(thread).get_present().state
    return {key: value for key, value in state.items() if key not in ("none", "xs", "ys")}


@pytest.mark.parametrize("case", CASES)
def test_a_branch_results_in_its_work(world: World, case: str) -> None:
    *roots, expected = CASES[case]
    assert run(world, *roots) == expected


def test_a_role_that_is_played_last_results_in_its_work(world: World) -> None:
    inner = (flow(WORK, "first"), TABLE.replace("inner", "second") % "first", TABLE % "second")
    assert [world.put(text).name for text in inner] == ["first", "second", "inner"]
    thread = world.begun(flow(SEQUENCE % (USE, AGENT % "one")))
    drive(world, thread, script(**PLAY | {"work": "Line 1\nLine 2"}))
    world.assert_sound(thread)
    assert world.snapshot(thread).get_present().state["r"] == "Line 1\nLine 2"


def test_a_verdict_that_rejects_is_the_result(world: World) -> None:
    found = run(world, WORK, MAP % ("xs", "x", WORK), judge={"ok": False})
    assert found == {"r": [{"ok": False}]}


def test_a_thread_of_an_older_workflow_has_what_its_newest_step_said(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(Flow, "needs_results", False)
        world.put(flow(WORK, "inner"))
        threads = [world.begun(flow(root)) for root in (USE, MAP % ("ys", "y", PAIR))]
    for thread in threads:
        drive(world, thread, script(**PLAY))
        world.assert_sound(thread)

    world.put(flow(WORK, "inner"))
    (change,) = list_history(world.store, "inner")[0]["changes"]
    assert change == {"kind": "changed", "path": "flow.type"}

    used, mapped = (world.snapshot(thread).get_present().state for thread in threads)

    assert used["r"] == {"ok": True}
    assert mapped["r"] == [{"branches": [{"status": "completed", "steps": 1}] * 2}] * 2


GRAPH = """\
name: graph
roles: {builder: {workflow: inner, outputSchema: {type: object, required: [%s]}}}
moderator: [{from: $START, to: builder}, {from: builder, to: $END}]
"""


@pytest.mark.parametrize(("inner", "member"), [(WORK, "file"), (PAIR, "o")])
def test_a_role_that_a_workflow_plays_has_its_work(world: World, inner: str, member: str) -> None:
    world.put(flow(inner, "inner"))
    thread = world.begun(GRAPH % member)

    assert drive(world, thread, script(**PLAY))[0].stopped == "end"

    assert (
        world.snapshot(thread).get_head_node().payload["meta"][member]
        == {"file": "a", "o": 1}[member]
    )
    world.assert_sound(thread)


def test_a_verifier_is_not_asked_again_for_work_that_does_not_fit(world: World) -> None:
    world.put(flow(WORK, "inner"))
    thread = world.begun(GRAPH % "other")
    with refuses("meta-unfit", match="'other'") as caught:
        drive(world, thread, script(**PLAY))
    assert "poke" not in str(caught.value.hint)
    assert f"`uwf thread fork {thread}`" in str(caught.value.hint)
