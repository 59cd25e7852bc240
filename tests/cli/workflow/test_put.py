import json

from cli.program import Uwf
from commands.world import DEMO

WRONG = """\
name: demo
roles:
  writer: {outputSchema: {type: strin}}
moderator:
  - {from: $START, to: nobody}
  - {from: writer, to: $END, when: 'meta.ok = '}
"""


def test_put_prints_what_is_registered_now(uwf: Uwf) -> None:
    first = uwf.json("workflow", "put", uwf.file())
    again = uwf.json("workflow", "put", uwf.file())
    changed = uwf.json("workflow", "put", uwf.file(DEMO + "\n"))

    assert list(first) == ["name", "workflow", "version", "changed", "warnings"]
    assert first["changed"]
    assert again == {**first, "changed": False}
    assert (changed["changed"], changed["workflow"]) == (True, first["workflow"])


def test_problems_are_objects_with_format_json(uwf: Uwf) -> None:
    ran = uwf("workflow", "put", uwf.file(WRONG), "--format", "json")

    problems = json.loads(ran.err)["error"]["problems"]
    assert [each["line"] for each in problems] == [3, 5, 6]
    assert all(each["path"] and each["message"] for each in problems)


LOOP = "type: loop\nnodes:\n  - {type: agent, agentId: worker}\n"


def test_warnings_are_in_the_document_and_on_standard_error(uwf: Uwf) -> None:
    path = uwf.file(LOOP, name="work.yaml")
    message = "no maxIterations is set, so the loop ends after 100 passes"

    for _time in range(2):
        ran = uwf("workflow", "put", path)
        document = json.loads(ran.out)
        assert document["name"] == "work"
        assert document["warnings"] == [{"path": "", "message": message, "line": 1, "file": path}]
        assert ran.err == f"warning: {path}:1: {message}\n"
    assert "warnings" not in uwf("workflow", "put", path, "--format", "text").out


def test_a_used_workflow_is_bound_when_the_file_is_put(uwf: Uwf) -> None:
    first = uwf.json("workflow", "put", uwf.file(LOOP, name="inner.yaml"))
    outer = uwf.file("type: workflow\nuse: inner\n", name="outer.yaml")
    bound = uwf.json("workflow", "put", outer)
    uwf.json("workflow", "put", uwf.file(LOOP + "maxIterations: 3\n", name="inner.yaml"))

    shown = uwf.json("workflow", "show", bound["workflow"])
    again = uwf.json("workflow", "put", outer)

    assert shown["flow"]["nodes"]["0"]["workflow"] == {"$ref": first["workflow"]}
    assert again["changed"]
    assert uwf("verify").status == 0


def test_a_workflow_that_is_not_known_is_a_problem(uwf: Uwf) -> None:
    ran = uwf("workflow", "put", uwf.file("type: workflow\nuse: gone\n", name="outer.yaml"))
    assert ran.status == 1
    assert "there is no workflow gone" in ran.err


def test_files_of_the_project_that_use_each_other_are_a_problem(uwf: Uwf) -> None:
    (uwf.place / ".workflows").mkdir()
    for name, other in (("one", "two"), ("two", "one")):
        uwf.file(f"type: workflow\nuse: {other}\n", name=f".workflows/{name}.yaml")

    ran = uwf("workflow", "show", "one")

    assert ran.status == 1
    assert "workflow one cannot contain itself" in ran.err


def test_a_thread_of_containers_needs_no_prompt(uwf: Uwf) -> None:
    path = uwf.file(LOOP, name="work.yaml")
    uwf.json("workflow", "put", path)

    thread = uwf.json("thread", "start", "work", "--state", '{"n": 1}')["thread"]

    shown = uwf.json("thread", "show", thread)
    assert (shown["prompt"], shown["status"]) == ("work", "ready")
    assert shown["state"]["n"] == 1
    assert [row["name"] for row in uwf.json("workflow", "list")] == ["work"]


def test_a_thread_of_a_graph_may_go_on_with_containers_before_its_first_step(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file(LOOP, name="work.yaml"))
    thread = uwf.begun()

    amended = uwf.json("thread", "amend", thread, "--workflow", "work", "--agent", uwf.agent())
    uwf.json("thread", "step", thread)
    refused = uwf("thread", "amend", thread, "--workflow", "demo")

    assert amended["workflowName"] == "work"
    assert (refused.status, "something else on the way" in refused.err) == (1, True), refused.err


def test_versions_of_a_flow_are_compared_by_place(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file(LOOP, name="work.yaml"))
    uwf.json("workflow", "put", uwf.file(LOOP + "maxIterations: 3\n", name="work.yaml"))
    newest = uwf.json("workflow", "history", "work")[0]
    assert [row["path"] for row in newest["changes"]] == ["nodes.0"]
