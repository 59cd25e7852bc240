import pytest
from commands.turn.test_input_files import FLOW, GRAPH
from commands.world import World

from uwf_git.agents.files import BadFileBelow
from uwf_git.commands.control.steer import patch_thread
from uwf_git.commands.turn.next_move import find_turn_place
from uwf_git.commands.turn.turn import fill_paths
from uwf_git.store.threads.snapshot import get_role, get_workflow


def fill(world: World, source: str, template: str) -> list[str]:
    """Fill a template of the role `writer` at its turn."""
    thread = world.begun(source.replace("FILES", "[a]"))
    patch_thread(world.store, world.caller, thread, {"a": {"b": "x"}, "n": 7, "up": "/etc"})
    snapshot = world.snapshot(thread)
    present = snapshot.get_present()
    workflow = get_workflow(snapshot, present.workflow)
    place = find_turn_place(snapshot, "0" if workflow.flow else None)
    role = get_role(snapshot, workflow.roles["writer"])
    return fill_paths(snapshot, present, place, (template,), of=role)


@pytest.mark.parametrize("source", [GRAPH, FLOW], ids=["graph", "flow"])
@pytest.mark.parametrize(
    ("template", "path"),
    [
        ("plain*", "plain*"),
        ("docs/${state.a.b}-${state.n}-${iteration}-${depth}.md", "docs/x-7-0-0.md"),
        ("${prompt.length}", None),
        ("${prompt}md", "Do it.md"),
    ],
)
def test_template_is_filled_with_the_state(
    world: World, source: str, template: str, path: str | None
) -> None:
    if path is None:
        with pytest.raises(BadFileBelow, match="and no path"):
            fill(world, source, template)
    else:
        assert fill(world, source, template) == [path]


@pytest.mark.parametrize("source", [GRAPH, FLOW], ids=["graph", "flow"])
@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("${state.none}", "has no value"),
        ("${state.up}/passwd", "has to be relative"),
        ("${state.a.b}/../../y", "leads out"),
        ("${'.git'}/config", "is git's own"),
    ],
)
def test_value_that_is_no_path_of_the_work_is_refused(
    world: World, source: str, template: str, problem: str
) -> None:
    with pytest.raises(BadFileBelow, match=problem):
        fill(world, source, template)
