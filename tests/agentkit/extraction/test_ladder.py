"""The rungs by which fields are found, as written down for the made-up runs in ``made_up/``."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from agentkit.adapters import test_loop
from agentkit.conftest import MakeContext
from agentkit.traces import find_odd
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agentkit.ladder import (
    Extracted,
    Fallbacks,
    NoMeta,
    RoleAnswer,
    WantedObject,
    build_correction,
    describe_failure,
    extract_meta,
    extract_with_fallbacks,
    find_misfit,
    read_answer,
)
from uwf_git.agentkit.records import build_usage, parse_last, parse_lines, read_usage
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, AskFailed, classify_status
from uwf_git.engine.turn_context import ExtractContext

MADE_UP = Path(__file__).parent / "made_up" / "ladder.json"

Golden = Callable[[str, str], None]
Given = Mapping[str, Any]


@dataclass
class Scripted:
    """An adapter whose answers are known beforehand."""

    answers: list[Given]
    name: str = "scripted"
    takes_schema: bool = False
    resumes: bool = True
    questions: list[AdapterQuestion] = field(default_factory=list)

    def ask(self, question: AdapterQuestion) -> AdapterAnswer:
        self.questions.append(question)
        return answer(self.answers.pop(0))


def answer(given: Given) -> AdapterAnswer:
    """Answer as *given* says, or fail."""
    if "fails" not in given:
        return AdapterAnswer(**{**given, "trace": tuple(given.get("trace", ()))})
    partial = answer(given["partial"]) if "partial" in given else None
    known = {"hint": given.get("hint"), "partial": partial, **given.get("facts", {})}
    raise AskFailed(given["fails"], given["message"], **known)


@dataclass
class Climb:
    """One run of the ladder, and all that it did."""

    given: Given
    context: MakeContext
    events: list[Given] = field(default_factory=list)
    extracted: list[str] = field(default_factory=list)

    def tell(self) -> Iterator[str]:
        flags = {key: self.given[key] for key in ("takes_schema", "resumes") if key in self.given}
        adapter = Scripted(list(self.given["answers"]), **flags)
        asked = AdapterQuestion(prompt="Review it.", **self.given.get("asked", {}))
        try:
            result = extract_with_fallbacks(adapter, self.context(), asked, self._fallbacks())
        except NoMeta as none:
            yield f"    no meta: {none.message}\n    text: {none.text!r}\n"
            yield f"    usage: {json.dumps(none.usage)}\n"
        except AskFailed as failure:
            yield f"    {failure.kind}: {failure.message}, hint: {failure.hint}\n"
            yield f"    recorded: {json.dumps(describe_failure(failure))}\n"
        else:
            yield f"    {result.rung}: {json.dumps(result.meta)}, content: {result.content!r}\n"
            yield f"    session: {result.session}, usage: {json.dumps(result.usage)}\n"
        for each in adapter.questions:
            schema = "" if each.schema is None else f", schema: {json.dumps(each.schema)}"
            yield f"    asked in {each.session}, spent {json.dumps(each.spent)}{schema}\n"
            yield f"        {each.prompt.splitlines()[0]}\n"
        yield from (f"    extracted from: {text!r}\n" for text in self.extracted)
        yield from (f"    - {json.dumps(event)}\n" for event in self.events)

    def _fallbacks(self) -> Fallbacks:
        given: dict[str, Any] = {"note": self.events.append}
        if "most_corrections" in self.given:
            given["most_corrections"] = self.given["most_corrections"]
        if "submitted" in self.given:
            given["submitted"] = lambda: self.given["submitted"]
        if "reported" in self.given:
            given["reported"] = lambda: tuple(self.given["reported"])
        if "extractor" in self.given:
            given["find_extractor"] = lambda: self._extract
        return Fallbacks(**given)

    def _extract(self, known: ExtractContext) -> AdapterAnswer:
        self.extracted.append(known.agent_content)
        return answer(self.given["extractor"])


def test_fields_are_found_as_ever(context: MakeContext, golden: Golden) -> None:
    told: list[str] = []
    for case, answer in json.loads(MADE_UP.read_text()).items():
        climb = Climb(answer, context)
        told += [f"{case}\n", *climb.tell()]
        assert find_odd(climb.events) == []

    golden("ladder.txt", "".join(told))


def test_correction_is_as_written_down(context: MakeContext, golden: Golden) -> None:
    role = context().current_role

    golden(
        "prompts/correction.md", build_correction("approved: 'yes' is not of type 'boolean'", role)
    )


# A role's answer as one object.

SCHEMA: dict[str, Any] = {
    "$defs": {"ok": {"type": "boolean"}},
    "type": "object",
    "properties": {"ok": {"$ref": "#/$defs/ok"}},
    "required": ["ok"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ({"content": "x", "meta": {"ok": True}}, RoleAnswer("x", {"ok": True})),
        ({"content": "x", "meta": {"ok": "?"}}, RoleAnswer("x", {"ok": "?"})),
        ({"content": 3, "meta": None}, RoleAnswer("", None)),
        ({"ok": True}, RoleAnswer("", {"ok": True})),
        ({"ok": "?"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_both_halves_are_read_and_bare_fields_if_they_fit(
    value: dict[str, Any] | None, answer: RoleAnswer | None
) -> None:
    assert read_answer(value, SCHEMA) == answer


def test_endless_nesting_is_reported_too() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    assert find_misfit(deep, {"type": "array", "items": {"$ref": "#"}}) != ""


def test_object_is_asked_for_in_words_too_unless_its_prompt_does() -> None:
    wanted = WantedObject({"type": "object"}, "What it is.")

    assert wanted.is_told_in_words
    assert wanted.guide == ""


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "auth"), (403, "auth"), (413, "too-long"), (429, "rate-limit"), (500, "model-error")],
)
def test_status_of_an_endpoint_has_a_kind(status: int, kind: str) -> None:
    assert classify_status(status) == kind


def test_lines_that_are_no_objects_are_left_out() -> None:
    output = b'\xef\xbb\xbf{"a": 1}\r\nwarning: old node\n[1]\n{"b": "\xff"}\n\n{"c": 3'

    assert parse_lines(output) == [{"a": 1}, {"b": "\ufffd"}]


@pytest.mark.parametrize(
    "output",
    [
        b'{"a": 1}',
        b'\xef\xbb\xbf{"a": 1}\n',
        b'{\n  "a": 1\n}\n',
        b'warning: x\n{"a": 1}\n',
        b'Error: at {place}\n    at f (x.js:1)\n{\n  "a": 1\n}\n',
        b'{"b": 2}\n{"a": 1}\n',
        b'{"a": 1}\nbye\n',
        b'{"a": 1}\n{not json\n',
    ],
)
def test_last_document_is_found(output: bytes) -> None:
    assert parse_last(output) == {"a": 1}


def test_document_that_was_cut_takes_no_time() -> None:
    assert parse_last(b"[\n" + b'{"a": [\n' * 100_000) is None


@given(st.binary())
def test_any_bytes_will_do(output: bytes) -> None:
    assert isinstance(parse_lines(output), list)
    parse_last(output)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity", "1" + "0" * 400])
def test_number_that_no_node_holds_is_not_reported(number: str) -> None:
    line = f'{{"cost": {number}, "tokens": {number}, "turns": 2}}'.encode()

    for record in (*parse_lines(line), parse_last(line), json.loads(line)):
        read = read_usage(record, costUsd="cost", inputTokens="tokens", turns="turns")
        assert read == {"turns": 2}


def test_unreported_numbers_are_left_out() -> None:
    assert build_usage(inputTokens=-3, outputTokens=2) == {"outputTokens": 2}
    assert build_usage(inputTokens=3, outputTokens=None, costUsd=0) == {
        "inputTokens": 3,
        "costUsd": 0,
    }


SCHEMA_EXTRACT = test_loop.SCHEMA | {"additionalProperties": False}

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
    assert extract_meta(text, SCHEMA_EXTRACT) == Extracted(OK, content, "front-matter")


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
        assert extract_meta(text, SCHEMA_EXTRACT) == Extracted(OK, text, rung)  # type: ignore[arg-type]  # str


TRUE, FALSE = "---\nok: true\n---\n", "---\nok: false\n---\n"


@pytest.mark.parametrize(
    "text",
    [
        f"They ask for\n{FALSE}but I say\n{TRUE}so.",
        f"They ask for\n```\n{FALSE}```\nbut I say\n{TRUE}so.",
        f"They ask for\n{FALSE}but I say\n```\n{TRUE}```\n",
        f"{TRUE}They ask for\n{FALSE}but no.",
        f"```\n{TRUE}They ask for\n{FALSE}but no.\n```",
        f"{TRUE}So `<think>` is removed:\n</think>",
        f"<think>\n{FALSE}</think>\n\n{TRUE}So.",
        f"<think>\n{FALSE}</think><thinking>{FALSE}</thinking>\n{TRUE}So.",
        f"I say no.\n{FALSE}No.\n</think>\n\n{TRUE}So.",
        f"{TRUE}The template ends with\n</think>\nand goes on.",
        f"{TRUE}It has\n</think>\nand no fields: {FALSE}",
        f"Sure.\n```html\n<think>!\n```\n{TRUE}",
        f"""Sure.\n{TRUE[:-4]}why: '{{"ok": false}}'\n---\n""",
        """Sure.\n```yaml\nok: true\nwhy: '{"ok": false}'\n```\n""",
        """```json\n{"ok": false}\n```\nNo:\n```yaml\nok: true\n```\n""",
    ],
)
def test_neither_a_thought_nor_a_quoted_block_is_the_answer(text: str) -> None:
    extracted = extract_meta(text, SCHEMA_EXTRACT)

    assert extracted.meta["ok"] is True
    assert "No." not in extracted.content
    assert "<think>\n" not in extracted.content


NOTHING = "there is neither front matter nor JSON"
BOTH = "two blocks of fields disagree: ok"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"<think>\n{TRUE}</think>\n\nNo.", NOTHING),
        (f"<think>\n{TRUE}", NOTHING),
        (f"{FALSE}The new template ends the thought with\n</think>\n{TRUE}So.", BOTH),
        (f"{FALSE}No.\n</think>\n\n{TRUE}So.", BOTH),
        (f'I look.\n<think>\n```\n{TRUE}```\n{TRUE}{{"ok": true}}</think>\nNo.', NOTHING),
        (f'They ask for\n{TRUE}but I say {{"ok": false}}.', BOTH),
        ('```json\n{"ok": true}\n```\nis wrong: {"ok": false}', BOTH),
        (f'Asked:\n{TRUE}I say {{"ok": false, "why": "x"}}.', BOTH),
    ],
)
def test_no_answer_is_made_of_thoughts_or_of_contradictions(text: str, problem: str) -> None:
    with pytest.raises(NoMeta, match=problem):
        extract_meta(text, SCHEMA_EXTRACT)


def test_blocks_that_agree_or_need_not_are_no_contradiction() -> None:
    asked = 'Sure:\n---\na: 1\n---\nSee {"a": 2}.'
    assert extract_meta(asked, True).meta == {"a": 1}  # noqa: FBT003 (true is a schema, no switch)
    agreed = f'So:\n{TRUE}I say {{"ok": true, "why": "x"}}.'
    assert extract_meta(agreed, SCHEMA_EXTRACT) == Extracted(OK, agreed, "front-matter")


def test_incomplete_front_matter_is_replaced_only_by_an_object_that_fits() -> None:
    front = "---\nwhy: it does not say\n---\n"

    assert extract_meta(front + "So.", SCHEMA_EXTRACT).meta == {"why": "it does not say"}
    assert extract_meta(front + '```json\n{"ok": true}\n```\n', SCHEMA_EXTRACT).meta == OK


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("I approve.", NOTHING),
        ("", NOTHING),
        ("ok: true", NOTHING),
        ("---\nok: true\n", "begins on line 1 has no closing ---"),
        ("---\nok: [\n---\n", "the front matter is not YAML"),
        ("---\njust words\n---\n", "the front matter has no fields"),
        ('The verdict is {"ok": "yes"}.', "ok: 'yes' is not of type 'boolean'"),
        ('```json\n{"okay": true}\n```', "'ok' is a required property"),
        ('{"ok": true, "ok": false}', NOTHING),
        ('[{"okay": true}', "'ok' is a required property"),
    ],
)
def test_nothing_is_invented(text: str, problem: str) -> None:
    with pytest.raises(NoMeta, match="holds no fields that fit the role's schema") as caught:
        extract_meta(text, SCHEMA_EXTRACT)

    assert problem in caught.value.problem
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * 20_000,
        "```\n" * 60_000,
        "---\na\n" * 40_000,
        '{ "' * 70_000,
        "`" * 500_000,
        "x\n" + "<think>\n" * 60_000,
        "<think></think>" * 30_000,
        "</think>\n" * 60_000,
    ],
    ids=["objects", "fences", "rules", "braces", "ticks", "thoughts", "ended", "ends"],
)
def test_hostile_answers_are_read_in_time(text: str) -> None:
    with pytest.raises(NoMeta):
        extract_meta(text, SCHEMA_EXTRACT)
