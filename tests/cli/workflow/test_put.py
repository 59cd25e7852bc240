import json
from pathlib import Path

import pytest
from cli.program import Uwf
from commands.draft.test_judge import GOOD, spoiled

from uwf_git.engine.picture.draw import FORMS

LOOP = "type: loop\nnodes:\n  - {type: agent, agentId: worker}\n"


def test_a_thread_of_a_graph_may_go_on_with_containers_before_its_first_step(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file(LOOP, name="work.yaml"))
    thread = uwf.begun()

    amended = uwf.json("thread", "amend", thread, "--workflow", "work", "--agent", uwf.agent())
    uwf.json("thread", "step", thread)
    uwf("thread", "amend", thread, "--workflow", "demo").says(1, "something else on the way")
    assert amended["workflowName"] == "work"


BEGINNINGS = {"text": "demo\n", "svg": "<svg ", "mermaid": "flowchart TD\n"}


@pytest.mark.parametrize("form", FORMS)
def test_a_name_a_hash_and_a_file_give_the_same_picture(uwf: Uwf, form: str) -> None:
    path = uwf.file()
    before = uwf("workflow", "graph", path, "--as", form)
    assert uwf.json("workflow", "list") == []
    hash_ = uwf.json("workflow", "put", path)["workflow"]

    drawn = [uwf("workflow", "graph", each, "--as", form) for each in ("demo", hash_)]

    assert before.status == 0
    assert before.out.startswith(BEGINNINGS[form])
    assert [each.out for each in drawn] == [before.out] * 2


def test_a_terminal_gets_lines_that_fit(uwf: Uwf, monkeypatch: pytest.MonkeyPatch) -> None:
    path = uwf.file(Path(uwf.file()).read_text().replace("Writes.", "Writes " + "and writes " * 30))
    for columns in (60, 100):
        monkeypatch.setenv("COLUMNS", str(columns))
        environ = {**uwf.session.environ, "COLUMNS": str(columns)}
        shown = uwf("workflow", "graph", path, stdout_is_tty=True, environ=environ).out
        assert columns - 15 < max(map(len, shown.splitlines())) <= columns


def drafted(uwf: Uwf, text: str) -> str:
    """Start a drafting thread, and let the drafter take its step; return its id."""
    uwf.file(text, name="newest")
    head = "---\\nname: x\\nwhy: so\\nquestions: []\\n---\\n"
    agent = uwf.agent(f"printf -- '{head}'; cat newest")
    words = ["run", "draft", "-p", "A letter", "--agent", f"drafter={agent}", "--max-steps", "1"]
    return str(uwf.json(*words)["thread"])


def test_draft_is_judged_in_the_form_of_an_agents_answer(uwf: Uwf) -> None:
    good = drafted(uwf, GOOD)
    bad = drafted(uwf, spoiled("agentId: writer", "agentId: scribe"))

    fit = json.loads(uwf("workflow", "judge", good, "--format", "text").out)
    unfit = json.loads(uwf("workflow", "judge", bad).out)

    assert fit["meta"] == {"valid": True, "problems": []}
    assert fit["content"].startswith("It ends: writer → checker")
    assert unfit["meta"]["valid"] is False
    assert unfit["meta"]["problems"][0].startswith("line 13, root.nodes[0].agentId: ")
    assert "> 13 | " in unfit["content"]


def test_no_store_is_needed_and_none_is_made(uwf: Uwf) -> None:
    environ = {**uwf.session.environ, "HOME": str(uwf.place / "home")}

    for repo in (None, "/nowhere"):
        ran = uwf("workflow", "validate", uwf.file(), repo=repo, environ=environ)
        assert (ran.status, ran.err) == (0, "")
    assert not (uwf.place / "home").exists()


def test_a_used_workflow_is_looked_up_if_there_is_a_store(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file("type: agent\nagentId: a\n", name="inner.yaml"))
    outer = uwf.file("type: workflow\nuse: inner\n", name="outer.yaml")

    assert uwf.json("workflow", "validate", outer)["valid"]
    (problem,) = json.loads(uwf("workflow", "validate", outer, repo="/nowhere").out)["problems"]
    assert problem["message"] == "there is no workflow inner: no store is here"


def test_workflows_of_the_project_and_of_uwf_are_known_without_a_store(uwf: Uwf) -> None:
    uwf.file("type: workflow\nuse: vote\n", name=".workflows/inner.yaml")
    outer = uwf.file("type: workflow\nuse: inner\n", name="outer.yaml")

    assert uwf("workflow", "validate", outer, repo="/nowhere").status == 0
