"""The rungs by which fields are found, as written down for the made-up runs in ``made_up/``."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentkit.conftest import MakeContext
from agentkit.traces import find_odd

from uwf_git.agentkit.ladder import Fallbacks, NoMeta, build_correction, extract_with_fallbacks
from uwf_git.agentkit.turn import AdapterAnswer, AdapterQuestion, AskFailed
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
    raise AskFailed(given["fails"], given["message"], hint=given.get("hint"), partial=partial)


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
    for case, given in json.loads(MADE_UP.read_text()).items():
        climb = Climb(given, context)
        told += [f"{case}\n", *climb.tell()]
        assert find_odd(climb.events) == []

    golden("ladder.txt", "".join(told))


def test_correction_is_as_written_down(context: MakeContext, golden: Golden) -> None:
    role = context().current_role

    golden(
        "prompts/correction.md", build_correction("approved: 'yes' is not of type 'boolean'", role)
    )
