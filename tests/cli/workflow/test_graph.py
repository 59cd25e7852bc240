from pathlib import Path

import pytest
from cli.program import Uwf

from uwf_git.engine.picture.draw import FORMS

BEGINNINGS = {
    "text": "demo\n",
    "svg": "<svg ",
    "mermaid": "flowchart TD\n",
}
OUTLINE = """\
demo
Write until somebody is content.

start
│
writer  Writes.
│
checker  Checks.
├─ 1. meta.ok = false ↺ writer
├─ 2. otherwise ↓ end
│
end
"""


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


def test_text_is_what_it_prints(uwf: Uwf) -> None:
    assert uwf("workflow", "graph", uwf.file()).out == OUTLINE


def test_all_problems_of_a_file_are_told(uwf: Uwf) -> None:
    ran = uwf("workflow", "graph", uwf.file("name: demo\n"))
    assert (ran.status, ran.out) == (1, "")
    assert "a workflow needs at least one role" in ran.err


def test_a_terminal_gets_lines_that_fit(uwf: Uwf, monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path(uwf.file()).read_text().replace("Writes.", "Writes " + "and writes " * 30)
    path = uwf.file(text)
    for columns in (60, 100):
        monkeypatch.setenv("COLUMNS", str(columns))
        environ = {**uwf.session.environ, "COLUMNS": str(columns)}
        shown = uwf("workflow", "graph", path, stdout_is_tty=True, environ=environ).out
        assert columns - 15 < max(map(len, shown.splitlines())) <= columns
