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
from model.telling import tell_cases

from uwf_git.agentkit.ladder import (
    Fallbacks,
    NoMeta,
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

MADE_UP = Path(__file__).parent / "made_up"

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
    for case, answer in json.loads((MADE_UP / "ladder.json").read_text()).items():
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


def test_endless_nesting_is_reported_too() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    assert find_misfit(deep, {"type": "array", "items": {"$ref": "#"}}) != ""


def test_object_is_asked_for_in_words_too_unless_its_prompt_does() -> None:
    wanted = WantedObject({"type": "object"}, "What it is.")

    assert wanted.is_told_in_words
    assert wanted.guide == ""


def test_lines_that_are_no_objects_are_left_out() -> None:
    output = b'\xef\xbb\xbf{"a": 1}\r\nwarning: old node\n[1]\n{"b": "\xff"}\n\n{"c": 3'

    assert parse_lines(output) == [{"a": 1}, {"b": "\ufffd"}]


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


def test_fields_of_a_text_are_found_or_named(golden: Golden) -> None:
    answers = {
        "extract_meta": lambda text: extract_meta(text, SCHEMA_EXTRACT),
        "extract_meta of any schema": extract_meta,
        "read_answer": lambda value: read_answer(value, SCHEMA),
        "classify_status": classify_status,
        "parse_last": lambda output: parse_last(output.encode()),
    }
    golden("extracted.txt", tell_cases(MADE_UP / "extracted.json", answers))
