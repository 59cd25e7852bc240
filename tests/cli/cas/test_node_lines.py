from typing import Any

import pytest

from uwf_git.cli.cas.nodes import payload_text, problem_document, row_document, row_words
from uwf_git.commands.cas.read import NodeRow
from uwf_git.model.builtin import META, TEXT
from uwf_git.model.problem import Problem

ROW = NodeRow(TEXT, META, "JSON Schema", "Text")


def test_row_has_a_problem_only_if_there_is_one() -> None:
    document = {"hash": TEXT, "type": META, "typeName": "JSON Schema", "summary": "Text"}

    assert row_document(ROW) == document
    assert row_document(ROW._replace(problem="gone")) == {**document, "problem": "gone"}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (ROW, "JSON Schema  Text"),
        (ROW._replace(type_name=None), f"{META}  Text"),
        (ROW._replace(summary=""), "JSON Schema"),
        (NodeRow(TEXT, None, None, "", "it is gone"), "! it is gone"),
    ],
)
def test_line_has_the_type_or_the_problem(row: NodeRow, words: str) -> None:
    assert row_words(row_document(row)) == words


@pytest.mark.parametrize(
    ("payload", "text"),
    [("a\nb", "a\nb"), ({"a": [1]}, '{\n  "a": [\n    1\n  ]\n}\n'), (None, "null\n")],
)
def test_payload_is_text_as_it_is_or_json_on_several_lines(payload: Any, text: str) -> None:
    assert payload_text(payload) == text


def test_problem_is_reported_with_its_place() -> None:
    assert problem_document(Problem("a.b", "no")) == {"path": "a.b", "message": "no"}
