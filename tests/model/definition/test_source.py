"""Adding a file to a workflow, and the possible problems."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workflow_file import SOUND, Found, read

from uwf_git.engine.expression import check_condition
from uwf_git.model.definition.definition import InvalidWorkflow, Surroundings
from uwf_git.model.definition.roles import RolesFile
from uwf_git.model.definition.source import Addition, append_addition, read_addition
from uwf_git.model.schema_check import check_schema
from uwf_git.model.workflow import build_workflow, parse_graph, parse_workflow
from uwf_git.model.yaml_reader import parse_yaml

DOCS = """\
roles:
  doc-writer: {systemPrompt: Document it.}
moderator:
  - {from: checker, to: doc-writer, when: meta.ok = true}
  - {from: doc-writer, to: $END}
agentOverrides: {doc-writer: uwf-docs}
"""
MADE_UP = Path(__file__).parent / "made_up"
BASE = read(SOUND)
NODE, CLOSURE = build_workflow(BASE, timestamp=0)


def added(text: str) -> Addition:
    return read_addition(
        parse_yaml(text),
        to=(tuple(BASE.roles), BASE.graph),
        check_condition=check_condition,
        check_schema=check_schema,
        file=RolesFile("", Surroundings().find_used),
    )


def problems_of(text: str) -> list[Found]:
    with pytest.raises(InvalidWorkflow) as caught:
        added(text)
    return [(each.line, each.path, each.message) for each in caught.value.problems]


def test_the_rest_of_the_workflow_stays_as_it_was() -> None:
    text = SOUND + "defaultAgent: d\nagentOverrides: {writer: w}\ninitialState: {a: 1}\n"
    whole, _ = build_workflow(read(text + "config: {maxSteps: 4}\n"), timestamp=0)

    node, nodes = append_addition(whole, added(DOCS), timestamp=9)

    workflow, before = parse_workflow(node), parse_workflow(whole)
    assert list(workflow.roles) == ["writer", "checker", "doc-writer"]
    assert workflow.agent_overrides == {"writer": {"command": "w"}} | {
        "doc-writer": {"command": "uwf-docs"}
    }
    same = ("name", "description", "default_agent", "initial_state", "config")
    assert [getattr(workflow, name) for name in same] == [getattr(before, name) for name in same]
    (moderator,) = (each for each in nodes if each.hash == workflow.moderator)
    assert parse_graph(moderator) == added(DOCS).graph


def test_every_problem_is_told_with_its_line(golden: Callable[[str, str], None]) -> None:
    told: list[str] = []
    for text in json.loads((MADE_UP / "wrong_additions.json").read_text()):
        told += [f"> {line}" for line in text.splitlines()]
        told += [f"{line}: {path}: {message}" for line, path, message in problems_of(text)]
        told.append("")
    golden("workflow_additions.txt", "\n".join(told))


conditions = st.one_of(st.none(), st.sampled_from(["meta.ok", "depth < 3", "state.x = 1"]))


@given(st.lists(conditions, min_size=1, max_size=4, unique=True))
def test_nothing_that_is_never_asked_comes_of_it(given_conditions: list[str | None]) -> None:
    ordered = sorted(given_conditions, key=lambda each: (each is None, each or ""))
    ways = "".join(
        "- {from: checker, to: $END" + (f", when: '{each}'" if each else "") + "}\n"
        for each in ordered
    )
    graph = added(f"graph:\n{ways}").graph["checker"]

    assert [way.condition for way in graph[: len(ordered)]] == ordered
    assert all(way.condition is not None for way in graph[:-1])
    assert graph[-1].condition is None
