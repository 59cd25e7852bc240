import pytest
from cli.program import Uwf

FLOW = """\
name: flow
description: Several at once.
root: {type: parallel, id: checks, nodes: [{type: agent, agentId: one, output: said}]}
"""


def test_what_may_be_a_mistake_in_appended_nodes_is_told(uwf: Uwf) -> None:
    thread = uwf.begun("nobody", workflow=FLOW)
    loop = uwf.file("- type: loop\n  nodes: [{type: agent, agentId: two}]\n", name="loop.yaml")
    branch = uwf.file("nodes:\n  - {type: agent, agentId: too, output: said}\n", name="b.yaml")

    looped = uwf("thread", "append", thread, loop)
    branched = uwf.json("thread", "append", thread, branch, "--to", "checks")

    told = "loop.yaml:1: [0]: no maxIterations is set, so the loop ends after 100 passes"
    assert looped.err.splitlines()[0].endswith(told)
    (warning,) = branched["warnings"]
    assert warning["message"].startswith("'said' is set by nodes[0], nodes[1]")
    text = uwf("thread", "append", thread, loop, "--format", "text")
    assert "maxIterations" not in text.out


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 2, "missing argument 'FILE'"),
        (["nowhere.yaml"], 1, "nowhere.yaml cannot be read"),
        (["demo.yaml", "--to", "x"], 1, "leave --to out"),
        (["demo.yaml"], 1, "demo.yaml: the workflow has 2 problems"),
        (["demo.yaml"], 1, "cannot be appended: it belongs to the whole workflow"),
    ],
)
def test_wrong_usage_is_reported_and_change_nothing(
    words: list[str], status: int, said: str, uwf: Uwf, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread = uwf.begun()
    monkeypatch.chdir(uwf.place)
    before = uwf.json("thread", "show", thread)["commit"]

    ran = uwf("thread", "append", thread, *words)

    assert (ran.status, ran.out) == (status, "")
    assert said in ran.err
    assert uwf.json("thread", "show", thread)["commit"] == before
