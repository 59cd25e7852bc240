from typing import Any

import pytest
from agentkit.conftest import DOCUMENT, Document
from refusing import refuses

from uwf_git.engine.turn_context import (
    parse_context,
)


@pytest.mark.parametrize(
    ("replaced", "problem"),
    [
        ({"thread": None}, "thread is not a string"),
        ({"role": "dev"}, "role is not an object"),
        ({"role": {}}, "role.name is missing"),
        ({"role": DOCUMENT["role"] | {"outputSchema": []}}, "role.outputSchema is not a JSON Sch"),
        ({"steps": {}}, "steps is not a list"),
        ({"steps": [DOCUMENT["steps"][0], {"role": "x"}]}, r"steps\[1\]\.meta is missing"),
        ({"steps": [1]}, r"steps\[0\] is not an object"),
        ({"hint": 5}, "hint is not a string"),
        ({"visit": True}, "visit is not a whole number"),
        ({"depth": 1.5}, "depth is not a whole number"),
        ({"lastError": {"kind": "x"}}, "lastError.message is missing"),
        ({"state": []}, "state is not an object"),
    ],
)
def test_problem_of_a_document_is_named(
    document: Document, replaced: dict[str, Any], problem: str
) -> None:
    with refuses("bad-context", match=problem):
        parse_context(document(**replaced))
