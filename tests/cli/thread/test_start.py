import json

import pytest
from cli.program import Uwf


@pytest.fixture(autouse=True)
def demo(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file())


def test_roles_without_an_agent_are_reported_and_are_no_error(uwf: Uwf) -> None:
    ran = uwf("thread", "start", "demo", "-p", "x", "--agent", "writer=w")

    assert ran.status == 0
    assert ran.err.startswith("note: no agent is bound to checker; `uwf config set agent CMD` sets")


def test_state_is_given_as_json(uwf: Uwf) -> None:
    words = ("thread", "start", "demo", "-p", "x")

    thread = uwf.json(*words, "--state", '{"a": {"b": [1]}}')["thread"]

    assert uwf.json("thread", "show", thread)["state"] == {"a": {"b": [1]}}
    for wrong in ("[1]", "null", "x"):
        ran = uwf(*words, "--state", wrong)
        assert (ran.status, ran.out) == (2, "")
        assert ran.err.startswith("error: the state is not JSON: ")


def test_wrong_usage_is_reported_and_begin_nothing(uwf: Uwf) -> None:
    for words, status, said in [
        (["nothing", "-p", "x"], 1, "there is no workflow nothing"),
        (["demo"], 2, "there is no prompt"),
        (["demo", "-p", " "], 2, "the prompt is empty"),
        (["demo", "-p", "x", "--agent", "nobody=x"], 1, "workflow demo has no role nobody"),
        (["demo", "-p", "x", "--agent", "'x"], 1, "no closing quotation"),
        (["demo", "-p", "x", "--workdir", "nowhere"], 1, "nowhere is not there"),
        (["demo", "-p", "x", "--workdir", "demo.yaml"], 1, "demo.yaml is not a directory"),
        (["demo", "--prompt-file", "nowhere"], 1, "nowhere cannot be read"),
        (["demo", "-p", "x", "more"], 2, "got unexpected extra argument"),
        ([], 2, "missing argument 'WORKFLOW'"),
    ]:
        ran = uwf("thread", "start", *words)

        assert (ran.status, ran.out) == (status, "")
        assert said in ran.err.splitlines()[0]
        assert ran.err.startswith("error: ")
        assert uwf.json("thread", "list") == []


def test_start_prints_workflow_and_thread(uwf: Uwf) -> None:
    ran = uwf("thread", "start", "demo", "-p", "Do it.", "--agent", uwf.agent())

    assert list(json.loads(ran.out)) == ["workflow", "thread"]
    assert (ran.status, ran.err) == (0, "")
