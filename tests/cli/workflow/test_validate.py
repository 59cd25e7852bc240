import json
import os

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


def test_all_problems_are_on_standard_output_with_file_and_line(uwf: Uwf) -> None:
    path = uwf.file(WRONG)

    ran = uwf("workflow", "validate", path)

    assert ran.status == 1
    assert ran.err == f"error: {path} has 3 problems\n"
    problems = json.loads(ran.out)["problems"]
    assert [(each["file"], each["line"]) for each in problems] == [(path, 3), (path, 5), (path, 6)]
    lines = uwf("workflow", "validate", path, "--format", "text").out.splitlines()
    assert [line.partition(": ")[0] for line in lines] == [f"{path}:{n}" for n in (3, 5, 6)]


def test_included_files_are_checked_and_named(uwf: Uwf) -> None:
    (uwf.place / "parts").mkdir()
    (uwf.place / "parts" / "schema.json").write_text('{\n  "type": "objec"\n}')
    (uwf.place / "a.md").write_text("Check.")
    text = DEMO.replace(
        "outputSchema: {type: object, properties: {ok: {type: boolean}}, required: [ok]}",
        "outputSchema: !include parts/schema.json",
    ).replace("Prompt: Check.", "Prompt: !include a.md")
    path = uwf.file(text)

    ran = uwf("workflow", "validate", path, "--format", "text")
    assert (ran.status, len(ran.out.splitlines())) == (1, 1)
    assert ran.out.startswith(f"{uwf.place}/parts/schema.json:2: roles.checker.outputSchema.type")
    put = uwf("workflow", "put", path)
    assert "on line 2 of parts/schema.json" in put.err

    (uwf.place / "parts" / "schema.json").write_text('{"type": "object"}')
    ran = uwf("workflow", "validate", path, "--format", "text")
    assert ran.out == f"{path}: ok: workflow demo, with 2 included files\n"
    os.unlink(uwf.place / "a.md")
    ran = uwf("workflow", "validate", path, "--format", "text")
    assert ran.out == f"{path}:10: !include a.md: No such file or directory\n"


def test_no_store_is_needed_and_none_is_made(uwf: Uwf) -> None:
    environ = {**uwf.session.environ, "HOME": str(uwf.place / "home")}

    for repo in (None, "/nowhere"):
        ran = uwf("workflow", "validate", uwf.file(), repo=repo, environ=environ)
        assert (ran.status, ran.err) == (0, "")
    assert not (uwf.place / "home").exists()


def test_warnings_leave_a_file_valid(uwf: Uwf) -> None:
    path = uwf.file("type: loop\nnodes: [{type: agent, agentId: a}]\n", name="work.yaml")
    message = "no maxIterations is set, so the loop ends after 100 passes"

    ran = uwf("workflow", "validate", path)

    assert (ran.status, ran.err) == (0, f"warning: {path}:1: {message}\n")
    document = json.loads(ran.out)
    assert (document["valid"], document["problems"]) == (True, [])
    assert document["warnings"] == [{"file": path, "line": 1, "path": "", "message": message}]


def test_a_used_workflow_is_looked_up_if_there_is_a_store(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file("type: agent\nagentId: a\n", name="inner.yaml"))
    outer = uwf.file("type: workflow\nuse: inner\n", name="outer.yaml")

    assert uwf.json("workflow", "validate", outer)["valid"]
    (problem,) = json.loads(uwf("workflow", "validate", outer, repo="/nowhere").out)["problems"]
    assert problem["message"] == "workflow inner is not known: no store is here"
