"""Branches that run at once in one directory have an output file each."""

import pytest
from workflow_file import read_flow_file

from uwf_git.model.definition.definition import InvalidWorkflow, Surroundings, UsedWorkflow
from uwf_git.model.workflow import build_workflow

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
