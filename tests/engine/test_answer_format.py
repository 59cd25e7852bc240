import json
from collections.abc import Callable
from typing import Any

import pytest

from uwf_git.engine.prompt import build_answer_format
from uwf_git.engine.turn_context import RoleView

Build = Callable[..., str]


@pytest.fixture
def build() -> Build:
    """Return the answer format of a schema."""

    def answer_format(schema: Any, extract_prompt: str | None = None) -> str:
        role = RoleView(
            name="r",
            description="",
            system_prompt="",
            extract_prompt=extract_prompt,
            output_schema=schema,
        )
        return build_answer_format(role)

    return answer_format


def test_template_shows_every_field_and_constants_letter_by_letter(build: Build) -> None:
    schema = {
        "type": "object",
        "properties": {
            "$status": {"const": "done"},
            "kind": {"enum": ["a: b", "c"]},
            "title": {"type": "string"},
            "notes": {"type": "array"},
            "any": True,
        },
    }

    text = build(schema)

    assert (
        "---\n"
        '$status: "done"\n'
        'kind: <"a: b" | "c">\n'
        "title: <text>\n"
        "notes: <list>\n"
        "any: <value>\n"
        "---\n"
        "<your text>\n" in text
    )
    assert "- `title` (optional): text\n" in text
    assert "JSON Schema" not in text


def test_name_that_yaml_would_not_take_for_one_is_quoted(build: Build) -> None:
    for name, shown in [
        ("$id", "$id"),
        ("é", "é"),
        ("1", '"1"'),
        ("No", '"No"'),
        ("#x", '"#x"'),
        ("a: b", '"a: b"'),
    ]:
        assert f"---\n{shown}: <text>\n---" in build({"properties": {name: {"type": "string"}}})


def test_name_that_is_a_word_of_yaml_is_quoted(build: Build) -> None:
    for word in ["y", "N", "Yes", "no", "on", "OFF", "true", "False", "null", "NULL"]:
        assert f'---\n"{word}": <text>\n---' in build({"properties": {word: {"type": "string"}}})


def test_schema_that_words_do_not_cover_is_shown_whole(build: Build) -> None:
    schema = {"type": "object", "properties": {"a": {"not": {"const": 1}}}, "required": ["a"]}

    assert f"```json\n{json.dumps(schema, indent=2)}\n```" in build(schema)


@pytest.mark.parametrize("keyword", ["if", "dependentRequired", "minProperties", "allOf", "not"])
def test_constraints_on_the_whole_are_not_dropped(build: Build, keyword: str) -> None:
    assert f'"{keyword}"' in build({"type": "object", "properties": {"a": {}}, keyword: {}})


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf"])
def test_alternatives_are_shown_one_by_one(build: Build, keyword: str) -> None:
    done = {"properties": {"$status": {"const": "done"}}, "required": ["$status"], "title": "Done"}
    failed = {"$ref": "#/$defs/failed"}
    schema = {
        keyword: [done, failed],
        "$defs": {"failed": {"properties": {"$status": {"const": "failed"}, "why": {}}}},
    }

    text = build(schema)

    assert "one of these 2 forms" in text
    assert 'Form 1: Done\n\n---\n$status: "done"\n---' in text
    assert 'Form 2:\n\n---\n$status: "failed"\nwhy: <value>\n---' in text
    assert "- `why` (optional): any value" in text
    assert "JSON Schema" not in text


def test_one_alternative_is_none(build: Build) -> None:
    text = build({"oneOf": [{"properties": {"a": {"type": "string"}}}]})

    assert "Form 1" not in text
    assert "- `a` (optional): text" in text


def test_alternatives_with_more_around_them_show_the_schema(build: Build) -> None:
    schema = {"oneOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}], "required": ["c"]}

    assert '"c"' in build(schema | {"properties": {"c": {}}})


@pytest.mark.parametrize("schema", [True, {}, {"type": "object"}, {"type": ["object", "null"]}])
def test_fields_without_names_are_the_agents_to_choose(build: Build, schema: Any) -> None:
    assert "---\n<name>: <value>\n---" in build(schema)


@pytest.mark.parametrize(
    ("schema", "phrase"),
    [
        ({"type": "array", "items": {"type": "string"}}, "a list, each item text"),
        ({"const": 5}, "exactly 5"),
        ({"enum": ["x"]}, 'one of "x"'),
    ],
)
def test_meta_that_is_no_object_goes_into_a_block(build: Build, schema: Any, phrase: str) -> None:
    text = build(schema)

    assert f"one fenced block of JSON that holds {phrase}:" in text
    assert "---" not in text


def test_extract_prompt_says_how_to_fill_the_fields(build: Build) -> None:
    assert "How to fill the fields:\n\nTake the verdict." in build({}, " Take the verdict.\n")
