from typing import Any

import pytest
from answering import Answers

from uwf_git.agentkit.ladder import find_misfit
from uwf_git.engine.form import fill_form, list_questions


def fill(asker: Answers, schema: Any) -> Any:
    return fill_form(asker, schema, check=find_misfit)


def fields(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


BOOLEAN, INTEGER, NUMBER, STRING = (
    {"type": name} for name in ("boolean", "integer", "number", "string")
)

TEXT_OR_NULL = {"anyOf": [STRING, {"type": "null"}]}
TWO = [{"a": 1}, {"b": 2}]


def test_field_that_refers_to_a_place_in_a_list_is_described() -> None:
    schema = {
        **fields(a={"$ref": "#/$defs/either/anyOf/1"}),
        "$defs": {"either": {"anyOf": [STRING, NUMBER]}},
    }
    assert list_questions(schema) == ["- `a` (optional): a number"]


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        (BOOLEAN, ["y"], True),
        (BOOLEAN, ["No"], False),
        (BOOLEAN, ["maybe", "true"], True),
        (INTEGER, ["3.5", "x", "-7"], -7),
        (INTEGER | {"minimum": 1}, ["0", "2"], 2),
        (NUMBER, ["1e999", "nan", "2.50"], 2.5),
        (NUMBER, ["3"], 3),
        (STRING, ["two words"], "two words"),
        (STRING, ["", '""'], ""),
        (STRING | {"minLength": 3}, ["ab", "abc"], "abc"),
        (STRING, ["true"], "true"),
        ({"enum": ["low", "high"]}, ["middle", "high"], "high"),
        ({"enum": ["low", "high"]}, ["2"], "high"),
        ({"enum": [3, 1]}, ["1"], 1),
        ({"enum": [None, True]}, ["null"], None),
        ({"type": ["string", "null"]}, ["null"], None),
        ({"type": ["integer", "null"]}, ["4"], 4),
        ({"type": "array", "items": STRING}, ["a b", "2", ""], ["a b", "2"]),
        ({"type": "array", "items": INTEGER}, ["1", "2", None], [1, 2]),
        ({"type": "array", "items": INTEGER}, ["[1, 2]", ""], [1, 2]),
        ({"type": "array", "items": {"type": "object"}}, ["- a: 1", "- b: 2", ""], TWO),
        ({"type": "object"}, ['{"a": [1]}', ""], {"a": [1]}),
        ({"type": "object"}, ["a: [1", "", "a: 1", "b: 2", ""], {"a": 1, "b": 2}),
        ({}, ["[1, two]", ""], [1, "two"]),
        # A text is what was typed, also where the schema takes other values.
        ({}, ["fix #1 # now", "so", ""], "fix #1 # now\nso"),
        (TEXT_OR_NULL, ["#12 is fixed", ""], "#12 is fixed"),
        (TEXT_OR_NULL, ["fix: it # now", ""], "fix: it # now"),
        (TEXT_OR_NULL, ["12", ""], "12"),
        (TEXT_OR_NULL, ["null", ""], None),
        ({"type": ["string", "integer"]}, ["12", ""], 12),
        ({}, ['"12"', ""], "12"),
        ({"type": "array", "items": {"enum": ["a: b", "c"]}}, ["a: b", "2", ""], ["a: b", "c"]),
        ({"type": "array", "items": {"$ref": "#/$defs/n"}}, ["a: b", "x", ""], ["a: b", "x"]),
    ],
)  # fmt: skip
def test_field_is_asked_until_it_fits(schema: dict[str, Any], typed: list[Any], value: Any) -> None:
    me = Answers(*typed)

    assert fill(me, fields("it", it=schema) | {"$defs": {"n": STRING}}) == {"it": value}
    assert me.answers == []


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


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        (STRING, ["x"], "x"),
        (True, ["{a: 1}", ""], {"a": 1}),
        ({"enum": [1, 2]}, ["2"], 2),
        ({"type": "object"}, [""], {}),
    ],
)
def test_schema_without_fields_is_one_question(schema: Any, typed: list[Any], value: Any) -> None:
    assert fill(Answers(*typed), schema) == value
    assert find_misfit(value, schema) == ""


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
