import pytest
from workflow_file import read_flow_file

from uwf_git.model.definition.surroundings import Surroundings, UsedWorkflow
from uwf_git.model.workflow import build_workflow

ROLES = """\
name: x
roles:
  reviewer: {outputSchema: {properties: {verdict: {}, notes: {}}}}
  tester: {outputSchema: {properties: {verdict: {}, passed: {}}}}
  coder: {outputSchema: {properties: {code: {}}}}
root:
"""
REVIEWER, TESTER = "{type: agent, agentId: reviewer}", "{type: agent, agentId: tester}"
CODER = "{type: agent, agentId: coder}"


def warnings(text: str) -> list[tuple[int | None, str, str]]:
    inner, closure = build_workflow(
        read_flow_file("name: inner\nroot: {type: agent, agentId: b}\n"), timestamp=0
    )
    known = UsedWorkflow(inner.hash, [inner, *closure])
    found = read_flow_file(text, Surroundings(find_used=lambda _name: known)).warnings
    return [(each.line, each.path, each.message) for each in found]


def test_a_loop_without_a_bound() -> None:
    text = f"{ROLES}  type: loop\n  nodes: [{CODER}]\n"
    message = "no maxIterations is set, so the loop ends after 100 passes"
    assert warnings(text) == [(6, "root", message)]


def test_two_branches_that_set_the_same_key() -> None:
    text = f"{ROLES}  type: parallel\n  nodes: [{REVIEWER}, {TESTER}]\n"
    assert warnings(text) == [
        (
            6,
            "root",
            (
                "'verdict' is set by nodes[0], nodes[1], which is a conflict if they differ; say "
                "which counts: merge: {verdict: last}"
            ),
        )
    ]


@pytest.mark.parametrize(
    ("fields", "nodes", "keys"),
    [
        ("merge: last", f"{REVIEWER}, {TESTER}", []),
        ("merge: {verdict: collect}", f"{REVIEWER}, {TESTER}", []),
        ("merge: {'*': collect}", f"{REVIEWER}, {TESTER}", []),
        ("merge: {notes: last}", f"{REVIEWER}, {TESTER}", ["verdict"]),
        ("join: all", f"{REVIEWER}, {CODER}", []),
        ("join: all", f"{CODER}, {CODER}", ["code", "coderOutput"]),
        (
            "join: all",
            f"{CODER}, {{type: sequential, nodes: [{TESTER}, {CODER}]}}",
            ["code", "coderOutput"],
        ),
        (
            "join: all",
            f"{TESTER}, {{type: conditional, condition: a, nodes: [{CODER}], else: [{REVIEWER}]}}",
            ["verdict"],
        ),
        ("join: all", f"{TESTER}, {{type: map, over: a, nodes: [{REVIEWER}]}}", []),
        (
            "join: all",
            f"{TESTER}, {{type: map, over: a, merge: {{verdict: last}}, nodes: [{REVIEWER}]}}",
            ["verdict"],
        ),
        (
            "join: all",
            (
                "{type: workflow, use: inner, output: code}, "
                "{type: workflow, use: inner, output: code}"
            ),
            ["code"],
        ),
    ],
)
def test_which_keys_branches_share(fields: str, nodes: str, keys: list[str]) -> None:
    found = warnings(f"{ROLES}  type: parallel\n  {fields}\n  nodes: [{nodes}]\n")
    assert [message.split("'")[1] for _line, _path, message in found] == keys


def test_an_agent_without_a_role_where_others_have_one() -> None:
    text = (
        f"{ROLES}  type: sequential\n  nodes:\n  - {CODER}\n  - {{type: agent, agentId: revewer}}\n"
    )
    assert warnings(text) == [
        (
            10,
            "root.nodes[1].agentId",
            (
                "no role is called 'revewer', so its agent gets no words and no schema; "
                "did you mean 'reviewer'?"
            ),
        )
    ]


def test_no_warning_where_nobody_has_a_role() -> None:
    assert warnings("name: x\nroot: {type: agent, agentId: anyone}\n") == []
