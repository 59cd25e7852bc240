from typing import Any

import pytest

from uwf_git.agentkit.ladder import Extracted, NoMeta, extract_meta

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "why": {"type": "string"}},
    "required": ["ok"],
    "additionalProperties": False,
}

OK = {"ok": True}


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("---\nok: true\n---\nThe text.\n", "The text.\n"),
        ("\n\n---\nok: true\n---\nThe text.\n", "The text.\n"),
        ("\ufeff---\r\nok: true\r\n---\r\nThe text.\r\n", "The text.\r\n"),
        ("---\nok: true\n---", ""),
        ("```\n---\nok: true\n---\nThe text.\n```\n", "The text.\n"),
        ("```markdown\n---\nok: true\n---\nThe text.\n```", "The text.\n"),
        ("```yaml\n---\nok: true\n---\n```\nThe text.\n", "The text.\n"),
        ("~~~~yaml\n---\nok: true\n---\n~~~~\nThe text.\n", "The text.\n"),
    ],
)
def test_front_matter_is_taken_off_the_text(text: str, content: str) -> None:
    assert extract_meta(text, SCHEMA) == Extracted(OK, content, "front-matter")


def test_fields_elsewhere_count_if_they_fit() -> None:
    for text, rung in [
        ("Sure, here it is:\n\n---\nok: true\n---\nThe text.\n", "front-matter"),
        ("Here:\n```yaml\n---\nok: true\n---\n```\n", "front-matter"),
        ("Intro\n\n---\n\nNot: fields\n\n---\n\nok: true\n\n---\n", "front-matter"),
        ('Done.\n\n```json\n{"ok": true}\n```\n', "block"),
        ('Done.\n\n```\n{"ok": true}\n```\nBye.', "block"),
        ("Done.\n\n```yaml\nok: true\n```\n", "block"),
        ('```json\n{"ok": false}\n```\nNo:\n```json\n{"ok": true}\n```\n', "block"),
        ('```json\n{"ok": true}\n```\nExample:\n```json\n{"other": 1}\n```\n', "block"),
        ('So the answer is {"ok": true}.', "json"),
        ('if (a) { b(); } {"ok": false} { "ok": true } {"x": {"ok": false}}', "json"),
        ('{"ok": true}', "json"),
        ('{{{{ {"ok": true} }}}}', "json"),
        ('```json\n{"ok": true}', "json"),
    ]:
        assert extract_meta(text, SCHEMA) == Extracted(OK, text, rung)  # type: ignore[arg-type]  # str


def test_incomplete_front_matter_is_replaced_only_by_an_object_that_fits() -> None:
    front = "---\nwhy: it does not say\n---\n"

    assert extract_meta(front + "So.", SCHEMA).meta == {"why": "it does not say"}
    assert extract_meta(front + '```json\n{"ok": true}\n```\n', SCHEMA).meta == OK


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("I approve.", "there is neither front matter nor JSON"),
        ("", "there is neither front matter nor JSON"),
        ("ok: true", "there is neither front matter nor JSON"),
        ("---\nok: true\n", "begins on line 1 has no closing ---"),
        ("---\nok: [\n---\n", "the front matter is not YAML"),
        ("---\njust words\n---\n", "the front matter has no fields"),
        ('The verdict is {"ok": "yes"}.', "ok: 'yes' is not of type 'boolean'"),
        ('```json\n{"okay": true}\n```', "'ok' is a required property"),
        ('{"ok": true, "ok": false}', "there is neither front matter nor JSON"),
        ('[{"okay": true}', "'ok' is a required property"),
    ],
)
def test_nothing_is_invented(text: str, problem: str) -> None:
    with pytest.raises(NoMeta, match="holds no fields that fit the role's schema") as caught:
        extract_meta(text, SCHEMA)

    assert problem in caught.value.problem
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    "text",
    ['{"a":' * 20_000, "```\n" * 60_000, "---\na\n" * 40_000, '{ "' * 70_000, "`" * 500_000],
    ids=["objects", "fences", "rules", "braces", "ticks"],
)
def test_hostile_answers_are_read_in_time(text: str) -> None:
    with pytest.raises(NoMeta):
        extract_meta(text, SCHEMA)
