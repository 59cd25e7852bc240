"""WORKFLOW on a command line: a name, a hash or a file."""

from pathlib import Path

import pytest
from cli.program import Uwf, clone, make_hub
from commands.world import DEMO

from uwf_git.store.store import open_store


@pytest.fixture
def versions(uwf: Uwf) -> list[str]:
    """Put three versions; return their workflows."""
    texts = [DEMO, DEMO.replace("Write.", "Write well."), "# why\n" + DEMO]
    return [uwf.json("workflow", "put", uwf.file(text))["workflow"] for text in texts]


def test_people_get_a_table_that_says_what_changed(uwf: Uwf, versions: list[str]) -> None:
    uwf.json("workflow", "remove", "demo", "-m", "Not\nneeded.")
    uwf.json("workflow", "rollback", "demo", versions[1])

    out = uwf("workflow", "history", "demo", "--format", "text").out

    header, back, removal, comment, better, first = out.splitlines()
    assert header.split() == ["WORKFLOW", "EVENT", "WHEN", "AUTHOR", "VERSION", "WHAT"]
    assert "  rollback  " in back
    assert "again as in " in back
    assert removal.endswith("  Not needed.")
    assert comment.endswith("  ~ roles.writer.systemPrompt")
    assert better.endswith("  ~ roles.writer.systemPrompt")
    assert first.endswith("  the first version")
    assert all(" UTC  " in line for line in out.splitlines()[1:])


def test_many_changes_are_counted(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file())
    state = ", ".join(f"s{number}: 1" for number in range(9))
    uwf.json("workflow", "put", uwf.file(DEMO + f"initialState: {{{state}}}\n"))

    line = uwf("workflow", "history", "demo", "--format", "text").out.splitlines()[1]

    assert line.endswith("+ initialState.s4, + initialState.s5, and 3 more")


def test_damaged_workflow_is_a_row_of_the_table_too(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file())
    Path(f"{uwf.session.repo}/refs/workflows/bad").write_text("garbage\n")

    ran = uwf("workflow", "list", "--format", "text")

    assert ran.status == 0
    assert "Write until somebody is content." in ran.out
    assert "does not hold an object id" in ran.out


def test_file_is_named_wherever_a_name_meant_it(uwf: Uwf) -> None:
    put = uwf.json("workflow", "put", uwf.file())
    path = uwf.file(DEMO.replace("Write.", "Write here."), name=".workflows/demo.yaml")
    told = f"note: workflow demo is the file {path}, and not {put['workflow']}, which is registered"

    shown = uwf("workflow", "show", "demo")
    started = uwf("thread", "start", "demo", "-p", "x", "--agent", uwf.agent())

    for ran in (shown, started, uwf("run", "demo", "-p", "x", "--agent", uwf.agent())):
        assert ran.status == 0
        assert ran.err.splitlines()[0] == told
    (row,) = uwf.json("workflow", "list")
    assert (row["file"], row["shadows"]) == (path, put["workflow"])
    assert len(uwf.json("workflow", "history", "demo")) == 1


def test_file_alone_is_named_without_more(uwf: Uwf) -> None:
    path = uwf.file(DEMO + "defaultAgent: sh theirs\n", name=".workflows/demo.yaml")

    assert uwf("workflow", "show", "demo").err == f"note: workflow demo is the file {path}\n"
    assert "demo.yaml" in uwf("workflow", "list", "--format", "text").out
    uwf("run", "demo", "-p", "x").refused(1, "a command that is not trusted here: sh theirs")
    told = uwf.json("agent", "trust", "--workflow", "demo")
    assert told == {"trusted": [{"command": "sh theirs"}]}


def test_agent_beside_the_workflows_is_found_from_every_folder(uwf: Uwf) -> None:
    for folder in (".git", "agents", "deep"):
        (uwf.place / folder).mkdir()
    uwf.agent(name="agents/all")
    uwf.file(DEMO + "defaultAgent: agents/all\n", name=".workflows/demo.yaml")

    ran = uwf.json("run", "demo", "-p", "x", "--trust", cwd=str(uwf.place / "deep"))

    assert (ran["status"], ran["steps"]) == ("completed", 2)


def test_broken_file_is_reported_with_every_problem(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file())
    path = uwf.file("name: demo\nroles: {a: {systemPromt: x}}\n", name=".workflows/demo.yaml")

    ran = uwf("thread", "start", "demo", "-p", "x").refused(1, f"  {path}:2: roles.a.systemPromt: ")
    assert f"hint: `uwf workflow validate {path}` checks it again" in ran.err
    assert uwf.json("workflow", "list")[0]["name"] == "demo"


def test_removal_and_rollback_travel_like_any_version(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file())
    hub = make_hub(uwf)
    uwf.json("push")
    there = clone(uwf, hub)
    assert len(uwf.json("workflow", "list", **there)) == 1

    uwf.json("workflow", "remove", "demo")
    uwf.json("push")
    uwf.json("fetch", **there)
    assert uwf.json("workflow", "list", **there) == []
    assert uwf.json("verify", **there)["problems"] == []

    uwf.json("workflow", "rollback", "demo", **there)
    uwf.json("push", **there)
    uwf.json("fetch")
    assert len(uwf.json("workflow", "list")) == 1
    tips = {open_store(path).refs.find("refs/workflows/demo") for path in (hub, there["repo"])}
    assert len(tips) == 1


def test_removed_here_and_changed_there_keeps_both(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file())
    hub = make_hub(uwf)
    uwf.json("push")
    there = clone(uwf, hub)
    uwf.json("workflow", "put", uwf.file() + "", **there)
    uwf.json("workflow", "remove", "demo", **there)
    uwf.json("push", **there)
    with open(uwf.file(), "a", encoding="utf-8") as file:
        file.write("# mine\n")

    uwf.json("workflow", "put", file.name)
    ran = uwf("fetch", "--format", "text")

    assert ran.status == 4
    assert "diverged  refs/workflows/demo" in ran.out
    assert len(uwf.json("workflow", "list")) == 1
