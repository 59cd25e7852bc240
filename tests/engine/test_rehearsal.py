from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workflow_file import SOUND, read, read_flow_file, spoiled

from uwf_git.engine.rehearsal import MOST_TURNS, Rehearsal, rehearse

WORKFLOWS = sorted((Path(__file__).parents[2] / "workflows").glob("*.yaml"))


def rehearsed(text: str) -> Rehearsal:
    return rehearse(read_flow_file(text), "Do it.")


def flow(nodes: str, roles: str = "") -> str:
    return f"name: x\n{roles}root:\n  type: sequential\n  nodes:\n{nodes}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_shipped_workflow_ends_when_all_say_the_least(path: Path) -> None:
    found = rehearsed(path.read_text())

    assert found.problem is None
    assert found.roles


def test_graph_is_gone_through() -> None:
    least_is_not_ok = spoiled("meta.ok = false", "meta.ok = false and depth < 4")

    assert rehearsed(least_is_not_ok.replace("properties: {ok", "required: [ok], properties: {ok"))[
        0
    ] == ("writer", "checker", "writer", "checker")


def test_graph_that_goes_round_tells_its_round() -> None:
    found = rehearsed(SOUND.replace("properties: {ok", "required: [ok], properties: {ok"))

    assert len(found.roles) == MOST_TURNS
    assert found.problem == (
        f"no end after {MOST_TURNS} turns: it goes round, writer → checker → writer"
    )
    assert found.at == "writer"


def test_loop_with_a_high_bound_goes_round() -> None:
    nodes = "    - type: loop\n      maxIterations: 100000\n      nodes:\n"
    agents = "        - {type: agent, agentId: a}\n        - {type: agent, agentId: b}\n"

    found = rehearsed(flow(nodes + agents))

    assert found.problem is not None
    assert found.problem.endswith("it goes round, a → b → a")
    assert found.at == "0/0/0"


def test_loop_without_an_agent_is_found() -> None:
    nodes = "    - {type: loop, maxIterations: 90000, nodes: [{type: conditional, "
    found = rehearsed(flow(nodes + 'condition: "false", nodes: [{type: agent, agentId: a}]}]}\n'))

    assert found.problem is not None
    assert "the flow reached no agent after 10,000 nodes" in found.problem


def test_template_of_what_nobody_says_is_found() -> None:
    found = rehearsed(flow('    - {type: agent, agentId: a, input: "See ${state.plan}."}\n'))

    assert found == Rehearsal((), found.problem, "0/0")
    assert found.problem is not None
    assert "state.plan" in found.problem


def test_list_that_is_none_is_found() -> None:
    nodes = "    - {type: map, over: state.parts, nodes: [{type: agent, agentId: a}]}\n"

    found = rehearsed(flow(nodes))

    assert found.problem is not None
    assert "over of map (0/0) is null, and no list" in found.problem


def test_schema_that_nothing_fits_is_found() -> None:
    found = rehearsed(
        flow("    - {type: agent, agentId: a}\n", "roles: {a: {outputSchema: false}}\n")
    )

    assert found.problem == "no answer was found that fits the schema of a; make it simpler"


def test_branches_that_disagree_are_found() -> None:
    says = "{outputSchema: {required: [x], properties: {x: {const: %d}}}}"
    roles = f"roles: {{a: {says % 1}, b: {says % 2}}}\n"
    nodes = (
        "    - {type: parallel, nodes: [{type: agent, agentId: a}, {type: agent, agentId: b}]}\n"
    )

    found = rehearsed(flow(nodes, roles))

    assert found == Rehearsal(
        ("a", "b"), "its branches disagree about x; say with `merge` which one counts", "0/0"
    )


def test_items_of_a_map_are_gone_through_one_by_one() -> None:
    nodes = """\
    - type: map
      over: "['x', 'y']"
      as: each
      output: results
      nodes: [{type: agent, agentId: a, input: "${each} ${eachIndex}"}]
    - {type: agent, agentId: b, input: "${state.results.length}"}
"""
    nodes = nodes.replace(" ${eachIndex}", " ${state.eachIndex}")

    assert rehearsed(flow(nodes)) == Rehearsal(("a", "a", "b"))


def test_graph_without_a_way_is_found() -> None:
    text = spoiled("        - to: $END\n", '        - {to: $END, condition: meta.ok = "never"}\n')

    found = rehearsed(text)

    assert found.problem == "after checker: no transition from checker holds"


@given(st.data())
def test_flow_ends_whatever_the_roles_say(data: st.DataObject) -> None:
    path = next(path for path in WORKFLOWS if path.stem == "review-loop")

    def play(role: str) -> Any:
        said = st.fixed_dictionaries({"approved": st.booleans(), "points": st.just([])})
        return data.draw(said) if role == "reviewer" else {}

    found = rehearse(read(path.read_text()), "Do it.", play)
    assert found.problem is None
    assert len(found.roles) <= 8


def test_loop_over_a_list_is_gone_through_item_by_item() -> None:
    nodes = """\
    - type: loop
      over: "['x', 'y']"
      as: each
      nodes: [{type: agent, agentId: a, input: "${each} ${state.eachIndex}"}]
"""
    assert rehearsed(flow(nodes)) == Rehearsal(("a", "a"))
