import pytest
from cli.program import Uwf
from commands.world import DEMO

from uwf_git.cli.workflow.show import note_local


def test_registered_workflow_is_not_worth_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    note_local("demo", None, None)

    assert capsys.readouterr() == ("", "")


def test_file_is_named_wherever_a_name_meant_it(uwf: Uwf) -> None:
    put = uwf.json("workflow", "put", uwf.file())
    path = uwf.place / ".workflows" / "demo.yaml"
    path.parent.mkdir()
    path.write_text(DEMO.replace("Write.", "Write here."))
    told = f"note: workflow demo is the file {path}, and not {put['workflow']}, which is registered"

    shown = uwf("workflow", "show", "demo")
    started = uwf("thread", "start", "demo", "-p", "x", "--agent", uwf.agent())
    run = uwf("run", "demo", "-p", "x", "--agent", uwf.agent())

    for ran in (shown, started, run):
        assert ran.status == 0
        assert ran.err.splitlines()[0] == told
    (row,) = uwf.json("workflow", "list")
    assert (row["file"], row["shadows"]) == (str(path), put["workflow"])
    assert len(uwf.json("workflow", "history", "demo")) == 1


def test_file_alone_is_named_without_more(uwf: Uwf) -> None:
    path = uwf.place / ".workflows" / "demo.yaml"
    path.parent.mkdir()
    path.write_text(DEMO + "defaultAgent: theirs\n")

    assert uwf("workflow", "show", "demo").err == f"note: workflow demo is the file {path}\n"
    assert "demo.yaml" in uwf("workflow", "list", "--format", "text").out
    ran = uwf("run", "demo", "-p", "x")
    assert ran.status == 1
    assert "would run a command that is not trusted here: theirs" in ran.err
    trusted = uwf.json("agent", "trust", "--workflow", "demo")
    assert trusted == {"trusted": [{"command": "theirs"}]}


def test_agent_beside_the_workflows_is_found_from_every_folder(uwf: Uwf) -> None:
    for folder in (".git", ".workflows", "agents", "deep"):
        (uwf.place / folder).mkdir()
    uwf.agent(name="agents/all")
    (uwf.place / ".workflows" / "demo.yaml").write_text(DEMO + "defaultAgent: agents/all\n")

    ran = uwf.json("run", "demo", "-p", "x", "--trust", cwd=str(uwf.place / "deep"))

    assert (ran["status"], ran["steps"]) == ("completed", 2)


def test_broken_file_is_reported_with_every_problem(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file())
    path = uwf.place / ".workflows" / "demo.yaml"
    path.parent.mkdir()
    path.write_text("name: demo\nroles: {a: {systemPromt: x}}\n")

    ran = uwf("thread", "start", "demo", "-p", "x")

    assert (ran.status, ran.out) == (1, "")
    assert f"  {path}:2: roles.a.systemPromt: " in ran.err
    assert f"hint: `uwf workflow validate {path}` checks it again" in ran.err
    assert uwf.json("workflow", "list")[0]["name"] == "demo"
