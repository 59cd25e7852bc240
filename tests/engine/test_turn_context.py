from dataclasses import fields
from typing import Any

import pytest
from agentkit.conftest import DOCUMENT, THREAD, Document
from refusing import refuses

from uwf_git.engine.turn_context import (
    AgentContext,
    ExtractContext,
    LastError,
    ModeratorContext,
    build_extract_context,
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


def test_optional_parts_may_be_there(document: Document) -> None:
    start = DOCUMENT["start"] | {"initialState": {"a": 1}}
    role = DOCUMENT["role"] | {"extractPrompt": "Take the verdict.", "outputSchema": True}
    error = {"kind": "schema", "message": "approved is missing"}

    context = parse_context(
        document(
            start=start, role=role, lastError=error, attempt=2, workdir=None, hint="h", later="x"
        )
    )

    assert context.start.initial_state == {"a": 1}
    assert context.current_role.extract_prompt == "Take the verdict."
    assert context.current_role.output_schema is True
    assert context.last_error == LastError(kind="schema", message="approved is missing")
    assert context.workdir is None
    assert context.hint == "h"


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


@pytest.mark.parametrize("name", sorted(DOCUMENT.keys() - {"lastError", "state", "workdir"}))
def test_missing_field_is_named(document: Document, name: str) -> None:
    incomplete = document()
    del incomplete[name]

    with refuses("bad-context", match=f"{name} is missing") as caught:
        parse_context(incomplete)

    assert "version" in str(caught.value.hint)


def test_invalid_document_is_reported() -> None:
    with refuses("bad-context", match="the document is not an object"):
        parse_context([])


def test_each_stage_knows_what_the_one_before_knew(document: Document) -> None:
    stages = [{each.name for each in fields(stage)} for stage in STAGES]
    agent = parse_context(document())

    extract = build_extract_context(agent, "the answer")

    assert stages[0] < stages[1] < stages[2]
    assert stages[0] == {"thread_id", "start", "steps"}
    assert stages[2] - stages[1] == {"agent_content"}
    assert extract.agent_content == "the answer"
    assert all(getattr(extract, name) == getattr(agent, name) for name in stages[1])


STAGES = (ModeratorContext, AgentContext, ExtractContext)
