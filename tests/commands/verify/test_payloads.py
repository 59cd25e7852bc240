from typing import Any

import pytest
from cas_nodes import ENDLESS, PERSON

from uwf_git.commands.verify.nodes import PayloadCheck, PayloadChecks, PayloadResult
from uwf_git.model.builtin import META, META_NODE
from uwf_git.model.node import Node, build_node

NAME = "8FWKR3TN5V1QA"


def schema_of(payload: Any) -> Node:
    return build_node(META, payload, timestamp=0)


def answers(*questions: PayloadCheck) -> dict[str, PayloadResult]:
    checks = PayloadChecks()
    found = [answer for question in questions for answer in checks.ask(question)]
    found += checks.answer()
    assert len(found) == len(questions)
    return {answer.origin: answer for answer in found}


def test_each_question_has_its_answer() -> None:
    person = schema_of(PERSON)
    found = answers(
        PayloadCheck("right", person, {"name": "Ada"}, 100),
        PayloadCheck("wrong", person, {"name": 5}, 100),
        PayloadCheck("schema", META_NODE, {"type": "strig"}, 100),
        PayloadCheck("points", person, {"name": "Ada", "friend": NAME}, 100, wants_references=True),
    )

    assert found["right"] == PayloadResult("right")
    assert [each.path for each in found["wrong"].problems] == ["name"]
    assert "'strig'" in found["schema"].problems[0].message
    assert found["points"].references == (NAME,)


def test_schema_that_hides_references_is_told_where_they_are_wanted() -> None:
    hidden = schema_of({"$ref": "r", "$defs": {"r": {"$id": "r", "format": "cas_ref"}}})
    found = answers(
        PayloadCheck("wanted", hidden, NAME, 100, wants_references=True),
        PayloadCheck("answer of a role", hidden, NAME, 100),
    )

    assert "hides references" in found["wanted"].problems[0].message
    assert found["answer of a role"].problems == ()


def test_nothing_asked_is_nothing_answered() -> None:
    assert answers() == {}


def test_many_questions_are_answered_on_the_way() -> None:
    checks = PayloadChecks()
    person = schema_of(PERSON)
    early = [
        answer
        for number in range(1000)
        for answer in checks.ask(PayloadCheck(number, person, {"name": number}, 100))
    ]
    late = list(checks.answer())

    assert [each.origin for each in early + late] == list(range(1000))
    assert 0 < len(late) < 1000
    assert all(each.problems for each in early)


def test_question_that_never_ends_spoils_no_other() -> None:
    endless = schema_of(ENDLESS)
    found = answers(
        PayloadCheck("before", endless, "aaa", 100),
        PayloadCheck("slow", endless, "a" * 100 + "b", 100),
        PayloadCheck("after", endless, "aaa", 100),
        PayloadCheck("other", schema_of(PERSON), {"name": "Ada"}, 100),
    )

    assert found["before"] == PayloadResult("before")
    assert found["other"] == PayloadResult("other")
    for name in ("slow", "after"):
        refused = found[name].refused
        assert refused is not None
        assert refused.startswith(f"cannot be checked against schema {endless.hash}: ")
        assert "took too much time" in refused


def test_after_some_hostile_schemas_none_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uwf_git.commands.verify.nodes._MOST_REFUSED", 1)
    found = answers(
        *(
            PayloadCheck(f"{n}", schema_of({**ENDLESS, "title": f"{n}"}), "a" * 100 + "b", 100)
            for n in "12"
        ),
        PayloadCheck("right", schema_of(PERSON), {"name": "Ada"}, 100),
    )

    refused = [answer.refused for answer in found.values()]
    assert all(refused)
    assert "too many other schemas exceeded the limits" in (refused[-1] or "")


def test_schema_that_breaks_the_validator_is_reported() -> None:
    deep: Any = 1
    for _level in range(400):
        deep = {"a": deep}
    recursive = schema_of({"$defs": {"x": {"$ref": "#/$defs/x"}}, "$ref": "#/$defs/x"})

    (answer,) = answers(PayloadCheck("deep", recursive, deep, 1000, wants_references=True)).values()
    assert answer.problems or answer.refused
