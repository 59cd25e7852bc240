from pathlib import Path

from cli.program import Uwf
from commands.world import DEMO


def test_damaged_workflow_is_a_row_of_the_table_too(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file())
    Path(f"{uwf.session.repo}/refs/workflows/bad").write_text("garbage\n")

    ran = uwf("workflow", "list", "--format", "text")

    assert ran.status == 0
    assert "Write until somebody is content." in ran.out
    assert "does not hold an object id" in ran.out


def test_empty_list_is_a_list(uwf: Uwf) -> None:
    assert uwf.json("workflow", "list") == []
    assert uwf("workflow", "list", "--limit", "0").status == 2


def test_problem_replaces_the_description_which_is_one_line(uwf: Uwf) -> None:
    text = "description: |\n  Write,\n  and write.\n"
    uwf.json(
        "workflow",
        "put",
        uwf.file(DEMO.replace("description: Write until somebody is content.\n", text)),
    )
    Path(f"{uwf.session.repo}/refs/workflows/bad").write_text("garbage\n")

    told = uwf("workflow", "list", "--format", "text").out.splitlines()

    assert [line.split("  ")[-1] for line in told if line.startswith("demo")] == [
        "Write, and write."
    ]
    assert any("  error: " in line for line in told if line.startswith("bad"))
