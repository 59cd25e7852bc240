import json
from pathlib import Path
from typing import Any

import pytest
from answering import Answers

from uwf_git.agentkit.ladder import find_misfit
from uwf_git.engine.form import fill_form, list_questions

FORMS = json.loads((Path(__file__).parent / "made_up" / "forms.json").read_text())


def fill(asker: Answers, schema: Any) -> Any:
    return fill_form(asker, schema, check=find_misfit)


def fields(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


BOOLEAN, INTEGER, NUMBER, STRING = (
    {"type": name} for name in ("boolean", "integer", "number", "string")
)


def test_field_that_refers_to_a_place_in_a_list_is_described() -> None:
    schema = {
        **fields(a={"$ref": "#/$defs/either/anyOf/1"}),
        "$defs": {"either": {"anyOf": [STRING, NUMBER]}},
    }
    assert list_questions(schema) == ["- `a` (optional): a number"]


@pytest.mark.parametrize(("schema", "typed", "value"), FORMS["one field"], ids=str)
def test_field_is_asked_until_it_fits(schema: Any, typed: list[Any], value: Any) -> None:
    me = Answers(*typed)

    assert fill(me, fields("it", it=schema) | {"$defs": {"n": STRING}}) == {"it": value}
    assert me.answers == []


@pytest.mark.parametrize(("schema", "typed", "value"), FORMS["no fields"], ids=str)
def test_schema_without_fields_is_one_question(schema: Any, typed: list[Any], value: Any) -> None:
    assert fill(Answers(*typed), schema) == value
    assert find_misfit(value, schema) == ""


def test_optional_field_may_be_skipped_and_a_needed_one_not() -> None:
    me = Answers("", None, "yes", "")

    assert fill(me, fields("must", must=BOOLEAN, may=STRING)) == {"must": True}
    assert me.shown.count("this is needed") == 2
    assert "may (optional, Enter skips it): text." in me.shown


def test_constant_is_shown_and_not_asked() -> None:
    me = Answers("y")

    schema = fields("kind", "ok", kind={"const": "review"}, ok=BOOLEAN)
    assert fill(me, schema) == {"kind": "review", "ok": True}
    assert 'kind: "review"' in me.shown


def test_one_of_several_forms_is_chosen_first() -> None:
    accept = fields("status", status={"const": "accepted"})
    reject = fields("status", "why", status={"const": "rejected"}, why=STRING)
    me = Answers("3", "2", "it is late")

    assert fill(me, {"oneOf": [accept, reject]}) == {"status": "rejected", "why": "it is late"}
    assert '  1  status = "accepted"\n  2  status = "rejected", why\n' in me.shown


def test_fields_that_do_not_fit_together_are_asked_again_and_kept_by_enter() -> None:
    schema = fields("a", a=INTEGER, b=INTEGER) | {"dependentRequired": {"a": ["b"]}}
    me = Answers("1", "", "", "2")

    assert fill(me, schema) == {"a": 1, "b": 2}
    assert "That does not fit the schema" in me.shown
    assert "[1] > " in me.shown


def test_default_is_told_where_the_field_may_be_left_out() -> None:
    good = {"type": "boolean", "default": True}
    assert list_questions(fields("good", good=good, also=good)) == [
        "- `good` (required): true or false",
        "- `also` (optional): true or false, true if you do not say",
    ]


def test_questions_of_several_forms_are_listed_form_by_form() -> None:
    accept = fields("status", status={"const": "accepted"}) | {"title": "All is well"}
    reject = fields("status", "why", status={"const": "rejected"}, why=STRING)

    assert list_questions({"oneOf": [accept, reject]}) == [
        "1. All is well",
        '- `status` (required): exactly "accepted"',
        "2.",
        '- `status` (required): exactly "rejected"',
        "- `why` (required): text",
    ]
