"""Adding a file to a workflow, and the possible problems."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workflow_file import SOUND, Found, read, read_flow_file

from uwf_git.engine.expression import check_condition
from uwf_git.model.definition.definition import InvalidWorkflow, Surroundings, UsedWorkflow
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


# Branches that run at once in one directory have an output file each.

FILE = """\
name: demo
roles:
  a: {outputFile: status.json}
  b: {outputFile: "FILE"}
root:
  type: KIND
  nodes:
    - {type: agent, agentId: a}
    - {type: sequential, nodes: [{type: agent, agentId: b}]}
"""


def flow(kind: str, file: str) -> str:
    return FILE.replace("KIND", kind).replace("FILE", file)


@pytest.mark.parametrize(
    ("kind", "file"),
    [
        ("sequential", "status.json"),
        ("parallel", "other.json"),
        ("parallel\n  isolation: worktree", "status.json"),
        ('map\n  isolation: worktree\n  over: "[1]"', "status.json"),
    ],
)
def test_others_may(kind: str, file: str) -> None:
    assert read_flow_file(flow(kind, file)).flow is not None


@pytest.mark.parametrize("item", ["item", "$it"])
def test_file_that_names_the_item_is_each_branch_s_own(item: str) -> None:
    text = FILE.replace("status.json", f'"${{state.{item}Index}}.json"')
    text = text.replace("FILE", f"${{state.{item}}}.json")
    text = text.replace("KIND", f'map\n  as: {item}\n  over: "[1]"')
    assert read_flow_file(text).flow is not None


@pytest.mark.parametrize(
    ("kind", "file", "branches"),
    [
        ("map\n  over: '[1]'", "./b.json", "{type: workflow, use: part}"),
        ("parallel", "b.json", "{type: agent, agentId: a}, {type: workflow, use: part}"),
        ("parallel", "./status.json", "{type: agent, agentId: a}, {type: agent, agentId: b}"),
    ],
)
def test_files_of_workflows_inside_and_other_spellings_count(
    kind: str, file: str, branches: str
) -> None:
    inner = "name: part\nroles: {b: {outputFile: 'FILE'}}\nroot: {KIND, nodes: [NODE]}\n"
    inner = inner.replace("NODE", "{type: agent, agentId: b}")

    def read_outer(inside: str, inner_file: str) -> None:
        part = inner.replace("KIND", inside).replace("FILE", inner_file)
        node, closure = build_workflow(read_flow_file(part), timestamp=0)
        used = UsedWorkflow(node.hash, [node, *closure])
        text = flow(kind, file).replace("status", "b").partition("    - ")[0]
        read_flow_file(f"{text}    [{branches}]\n", Surroundings(find_used=lambda _: used))

    with pytest.raises(InvalidWorkflow, match=r"would write 'b\.json'"):
        read_outer("type: sequential", "b.json")
    if "use: part" in branches:
        read_outer("type: sequential", "${state.own}.json")
        read_outer("type: parallel, isolation: worktree", "b.json")


def test_who_verifies_the_work_of_two_branches_writes_one_file() -> None:
    judged = "{type: agent, agentId: b, verifiedBy: {agentId: a, when: meta.ok}}"
    other = judged.replace("b,", "c,")
    text = f"{FILE.partition('    - ')[0]}    - {judged}\n    - {other}\n"
    text = text.replace("KIND", "parallel").replace("FILE", "b.json")
    with pytest.raises(InvalidWorkflow, match="would write 'status"):
        read_flow_file(text)
