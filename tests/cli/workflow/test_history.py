import pytest
from cli.program import Uwf
from commands.world import DEMO


@pytest.fixture
def versions(uwf: Uwf) -> list[str]:
    """Put three versions; return their workflows."""
    texts = [DEMO, DEMO.replace("Write.", "Write well."), "# why\n" + DEMO]
    return [uwf.json("workflow", "put", uwf.file(text))["workflow"] for text in texts]


def test_history_is_one_document_with_the_newest_first(uwf: Uwf, versions: list[str]) -> None:
    rows = uwf.json("workflow", "history", "demo")

    assert [row["workflow"] for row in rows] == versions[::-1]
    assert list(rows[0]) == [
        *("version", "event", "workflow", "timestamp", "author", "before", "changes"),
    ]
    assert len(uwf.json("workflow", "history", "demo", "--limit", "2")) == 2


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


def test_only_a_comment_changed_is_reported_as_the_file(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file())
    uwf.json("workflow", "put", uwf.file(DEMO + "# why\n"))

    out = uwf("workflow", "history", "demo", "--format", "text").out
    assert "~ file workflow.yaml" in out
