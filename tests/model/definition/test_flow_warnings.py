import pytest
from workflow_file import read_flow_file

from uwf_git.model.definition.definition import Surroundings, UsedWorkflow
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
        ("join: any", f"{REVIEWER}, {TESTER}", []),
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
        *(
            (
                "join: all",
                f"{TESTER}, {{type: map, over: a, merge: {policy}, nodes: [{REVIEWER}]}}",
                ["verdict"],
            )
            for policy in ("last", "{'*': last}", "{'*': last, notes: first}")
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


SPLITS = [
    f"{{type: parallel, {{}}nodes: [{CODER}]}}",
    f"{{type: map, over: state.a, {{}}nodes: [{CODER}]}}",
    "{type: workflow, use: inner, {}name: n}",
]


def fills(split: str, fields: str) -> str:
    return split.replace("{}", f"{fields}, " if fields else "")


def find_policies(root: str) -> list[tuple[str, str]]:
    """Return where a policy gives up no branch, and the first words of the warning."""
    found = warnings(f"{ROLES.rstrip()} {root}\n")
    return [(path, message.partition(" of ")[0]) for _line, path, message in found]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(
    "around",
    [
        "{{type: sequential, onError: continue, nodes: [{}]}}",
        "{{type: loop, maxIterations: 2, onError: continue, nodes: [{}]}}",
        "{{type: conditional, condition: a, onError: continue, nodes: [{}]}}",
    ],
)
def test_a_policy_around_branches_that_does_not_reach_them(split: str, around: str) -> None:
    told = [("root.nodes[0]", "onError: continue")]
    assert find_policies(around.format(fills(split, ""))) == told
    # Whoever wrote one of these has decided.
    assert find_policies(around.format(fills(split, "onError: continue"))) == []
    assert find_policies(around.format(fills(split, "onError: stop"))) == []
    # In a branch the container around the branches gives up what fails.
    inside = f"{{type: parallel, onError: continue, nodes: [{fills(split, '')}]}}"
    assert find_policies(inside) == []


def test_a_policy_further_up_and_with_tries() -> None:
    split = fills(SPLITS[0], "onError: retry")
    root = (
        "{type: sequential, onError: continue, nodes: [{type: sequential, onError: stop, nodes: "
        f"[{split}]}}]}}"
    )
    assert find_policies(root) == [("root.nodes[0].nodes[0]", "onError: continue")]


@pytest.mark.parametrize("split", SPLITS)
def test_branches_that_are_tolerated_by_no_policy(split: str) -> None:
    message = "has no effect without onError: continue, which gives branches up"
    assert find_policies(fills(split, "tolerate: 1")) == [("root.tolerate", message)]
    assert find_policies(fills(split, "tolerate: 1, onError: continue")) == []
