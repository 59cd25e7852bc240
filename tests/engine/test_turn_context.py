from typing import Any

import pytest
from agentkit.conftest import DOCUMENT, THREAD, Document
from refusing import refuses

from uwf_git.engine.turn_context import (
    parse_context,
)


def test_document_becomes_a_context(document: Document) -> None:
    context = parse_context(document(state={"round": 2}, visit=3))

    assert context.thread_id == THREAD
    assert context.workflow.name == "solve-issue"
    assert context.current_role.system_prompt.startswith("You review code.")
    assert context.current_role.output_schema == DOCUMENT["role"]["outputSchema"]
    assert context.current_role.extract_prompt is None
    assert [step.role for step in context.steps] == ["planner", "developer"]
    assert context.steps[1].content.endswith("They pass.\n")
    assert (context.head, context.depth) == ("8FWKR3TN5V1QA", 2)
    assert (context.visit, context.attempt, context.last_error) == (3, 1, None)
    assert (context.state, context.workdir) == ({"round": 2}, "/srv/shop")
    # An older engine, without hints, sends no such key.
    assert context.hint is None


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
