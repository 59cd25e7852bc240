from pathlib import Path

import pytest

from uwf_git.commands.workflow.build import validate_workflow


def test_every_problem_has_its_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "roles.yaml").write_text("checker:\n  outputSchema: {type: objec}\n")
    source = "name: -x\nroles: !include parts/roles.yaml\nmoderator: [{from: $START, to: $END}]\n"

    problems = validate_workflow(
        source.encode(), path=str(tmp_path / "demo.yaml"), shown="flows/demo.yaml"
    ).problems

    found = [(each.file, each.line, each.path) for each in problems]
    assert found[0] == ("flows/demo.yaml", 1, "name")
    assert ("flows/parts/roles.yaml", 2, "roles.checker.outputSchema.type") in found
    assert ("flows/demo.yaml", 3, "moderator[0].to") not in found


@pytest.mark.parametrize(
    ("source", "line", "said"),
    [
        (b"", None, "the file is empty"),
        (b"a: 1\na: 2", 2, "is duplicated"),
        (b"x" * 2_000_000, None, "larger than 1 MiB"),
        (b"\xff", 1, "not UTF-8"),
        (b"a: 1\nb: !include c.md", 2, "standard input has no folder"),
    ],
)
def test_unreadable_file_is_one_problem(source: bytes, line: int | None, said: str) -> None:
    (problem,) = validate_workflow(source, path=None, shown="standard input").problems

    assert (problem.file, problem.line) == ("standard input", line)
    assert said in problem.message
