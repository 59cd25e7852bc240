import json

import pytest
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

    assert list(first) == ["name", "workflow", "version", "changed"]
    assert first["changed"]
    assert again == {**first, "changed": False}
    assert (changed["changed"], changed["workflow"]) == (True, first["workflow"])


def test_all_problems_are_reported_at_once_with_their_lines(uwf: Uwf) -> None:
    ran = uwf("workflow", "put", uwf.file(WRONG))

    assert (ran.status, ran.out) == (1, "")
    lines = ran.err.splitlines()
    assert lines[0].startswith("error: the workflow has 3 problems")
    assert [line.split(":")[0].strip() for line in lines[1:4]] == ["line 3", "line 5", "line 6"]
    assert uwf.json("workflow", "list") == []


def test_problems_are_objects_with_format_json(uwf: Uwf) -> None:
    ran = uwf("workflow", "put", uwf.file(WRONG), "--format", "json")

    problems = json.loads(ran.err)["error"]["problems"]
    assert [each["line"] for each in problems] == [3, 5, 6]
    assert all(each["path"] and each["message"] for each in problems)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"\x7fELF\x02\x01\x01\0", "U+007F is not allowed in a file"),
        (b"\xff\xd8\xff", "not UTF-8 text"),
        (b"[" * 100_000, "nested more than 100 levels deep"),
        (b"x" * 3_000_000, "larger than 1 MiB"),
        (b"name: x\nname: y\n", "line 2: the key 'name' is duplicated"),
    ],
)
def test_file_that_is_no_workflow_is_reported_in_one_line(
    content: bytes, said: str, uwf: Uwf
) -> None:
    (uwf.place / "bad.yaml").write_bytes(content)

    ran = uwf("workflow", "put", str(uwf.place / "bad.yaml"))

    assert (ran.status, ran.out) == (1, "")
    assert said in ran.err
    assert len(ran.err.splitlines()) <= 2


@pytest.mark.parametrize(
    ("words", "status"),
    [(["nowhere.yaml"], 1), (["."], 1), ([""], 2), ([], 2), (["a\0b"], 1), (["x" * 5000], 1)],
)
def test_file_that_cannot_be_read_is_named(words: list[str], status: int, uwf: Uwf) -> None:
    ran = uwf("workflow", "put", *words)

    assert (ran.status, ran.out) == (status, "")
    assert ran.err.startswith("error: ")


def test_case_twin_is_refused(uwf: Uwf) -> None:
    uwf.json("workflow", "put", uwf.file())

    ran = uwf("workflow", "put", uwf.file(DEMO.replace("name: demo", "name: Demo")))

    assert ran.status == 1
    assert "workflow Demo differs from demo only by case" in ran.err
