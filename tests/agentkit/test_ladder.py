from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from agentkit.conftest import MakeContext
from agentkit.traces import find_odd

from uwf_git.agentkit.adapter import Answer, Asked, NoAnswer
from uwf_git.agentkit.context import ExtractContext
from uwf_git.agentkit.extract import NoMeta
from uwf_git.agentkit.ladder import Rungs, climb

GOOD = {"approved": True}
BAD = {"approved": "yes"}
FRONT = "---\napproved: true\n---\nFine.\n"
NOTHING = "I have reviewed it. Fine."


@dataclass
class Scripted:
    """An adapter whose answers are known beforehand."""

    answers: list[Answer | NoAnswer]
    name: str = "scripted"
    takes_schema: bool = False
    resumes: bool = True
    asked: list[Asked] = field(default_factory=list)

    def ask(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        answer = self.answers.pop(0)
        if isinstance(answer, NoAnswer):
            raise answer
        return answer


def said(
    text: str, *, session: str | None = "s1", structured: Any = None, tokens: int = 10
) -> Answer:
    usage = {"outputTokens": tokens, "costUsd": 0.5}
    return Answer(text=text, session=session, structured=structured, usage=usage)


ASKED = Asked(prompt="Review it.")


def test_structured_output_of_the_program_is_the_cheapest(context: MakeContext) -> None:
    adapter = Scripted([said(NOTHING, structured=GOOD)], takes_schema=True)

    result = climb(adapter, context(), ASKED, Rungs())

    assert (result.meta, result.content, result.rung) == (GOOD, NOTHING, "native")
    assert adapter.asked[0].schema == context().current_role.output_schema


def test_program_that_takes_no_schema_is_given_none(context: MakeContext) -> None:
    adapter = Scripted([said(FRONT)])

    result = climb(adapter, context(), ASKED, Rungs())

    assert adapter.asked[0].schema is None
    assert (result.meta, result.content, result.rung) == (GOOD, "Fine.\n", "front-matter")
    assert (result.session, result.usage) == ("s1", {"outputTokens": 10, "costUsd": 0.5})


@pytest.mark.parametrize(
    ("text", "rung"),
    [
        (FRONT, "front-matter"),
        ("\ufeff\n" + FRONT, "front-matter"),
        ("Here you are:\n\n" + FRONT, "front-matter"),
        ("```yaml\n" + FRONT + "```\n", "front-matter"),
        ('Done.\n```json\n{"approved": true}\n```\n', "block"),
        ('Done: {"approved": true}', "json"),
    ],
)
def test_fields_are_found_where_models_put_them(context: MakeContext, text: str, rung: str) -> None:
    result = climb(Scripted([said(text)]), context(), ASKED, Rungs())

    assert (result.meta, result.rung) == (GOOD, rung)


def test_structured_output_that_does_not_fit_is_no_answer(context: MakeContext) -> None:
    adapter = Scripted([said(FRONT, structured=BAD)], takes_schema=True)

    assert climb(adapter, context(), ASKED, Rungs()).rung == "front-matter"


def test_what_was_handed_in_by_a_tool_comes_first(context: MakeContext) -> None:
    rungs = Rungs(submitted=lambda: {"meta": GOOD, "content": "By the tool."})

    result = climb(Scripted([said(FRONT)]), context(), ASKED, rungs)

    assert (result.meta, result.content, result.rung) == (GOOD, "By the tool.", "submitted")


@pytest.mark.parametrize("handed_in", [{"meta": GOOD}, {"meta": GOOD, "content": 1}])
def test_words_are_the_content_if_none_were_handed_in(
    context: MakeContext, handed_in: Mapping[str, Any]
) -> None:
    rungs = Rungs(submitted=lambda: handed_in)

    assert climb(Scripted([said(NOTHING)]), context(), ASKED, rungs).content == NOTHING


def test_correction_goes_on_with_the_conversation(context: MakeContext) -> None:
    adapter = Scripted([said(NOTHING), said("---\napproved: false\n---\nNo.", tokens=5)])

    result = climb(adapter, context(), ASKED, Rungs())

    assert (result.meta, result.rung) == ({"approved": False}, "front-matter-corrected")
    assert [asked.session for asked in adapter.asked] == [None, "s1"]
    assert "there is neither front matter nor JSON" in adapter.asked[1].prompt
    assert ASKED.prompt not in adapter.asked[1].prompt


def test_correction_costs_but_the_first_run_stays_the_content(context: MakeContext) -> None:
    adapter = Scripted([said(NOTHING), said("---\napproved: maybe\n---"), said(FRONT, tokens=1)])

    result = climb(adapter, context(), ASKED, Rungs())

    assert (result.content, result.session) == (NOTHING, "s1")
    assert result.usage == {"outputTokens": 21, "costUsd": 1.5}
    assert [asked.spent for asked in adapter.asked] == [
        {},
        {"outputTokens": 10, "costUsd": 0.5},
        {"outputTokens": 20, "costUsd": 1.0},
    ]
    assert "approved" in adapter.asked[2].prompt


def test_agent_is_corrected_twice_and_no_more(context: MakeContext) -> None:
    adapter = Scripted([said(NOTHING)] * 4)

    with pytest.raises(NoMeta) as caught:
        climb(adapter, context(), ASKED, Rungs())

    assert len(adapter.asked) == 3
    assert (caught.value.text, caught.value.usage) == (
        NOTHING,
        {"outputTokens": 30, "costUsd": 1.5},
    )


@pytest.mark.parametrize(
    "adapter",
    [
        Scripted([said(NOTHING, session=None)]),
        Scripted([said(NOTHING)], resumes=False),
    ],
)
def test_without_a_conversation_nobody_is_corrected(
    context: MakeContext, adapter: Scripted
) -> None:
    with pytest.raises(NoMeta):
        climb(adapter, context(), ASKED, Rungs())


@pytest.mark.parametrize("session", ["s2", None])
def test_agent_that_forgot_the_conversation_is_not_believed(
    context: MakeContext, session: str | None
) -> None:
    adapter = Scripted([said(NOTHING), said(FRONT, session=session)])

    with pytest.raises(NoMeta, match="forgotten the conversation"):
        climb(adapter, context(), ASKED, Rungs())


def test_correction_that_is_not_answered_is_told(context: MakeContext) -> None:
    failure = NoAnswer("rate-limit", "too many requests", partial=said("", tokens=3))

    with pytest.raises(NoMeta, match="asked again: too many requests") as caught:
        climb(Scripted([said(NOTHING), failure]), context(), ASKED, Rungs())

    assert (caught.value.text, caught.value.usage["outputTokens"]) == (NOTHING, 13)


def test_first_question_without_an_answer_ends_it(context: MakeContext) -> None:
    failure = NoAnswer("auth", "log in first", hint="claude login")

    with pytest.raises(NoAnswer) as caught:
        climb(Scripted([failure]), context(), ASKED, Rungs())

    assert caught.value is failure


def test_conversation_that_is_gone_begins_anew(context: MakeContext) -> None:
    adapter = Scripted([NoAnswer("no-session", "unknown session"), said(FRONT, session="s2")])
    old = Asked(prompt="Review it.", session="s1", spent={"outputTokens": 99})

    result = climb(adapter, context(), old, Rungs())

    assert [(each.session, each.prompt) for each in adapter.asked] == [
        ("s1", "Review it."),
        (None, "Review it."),
    ]
    assert (result.session, dict(adapter.asked[1].spent)) == ("s2", {})


def test_conversation_that_was_silently_forgotten_is_noted(context: MakeContext) -> None:
    events: list[Mapping[str, Any]] = []
    adapter = Scripted([said(NOTHING, session="s2"), said(FRONT, session="s2", tokens=1)])
    old = Asked(prompt="Review it.", session="s1", spent={"outputTokens": 99})

    climb(adapter, context(), old, Rungs(note=events.append))

    assert [event["type"] for event in events] == ["warning", "correction", "rung"]
    assert adapter.asked[1].spent == {"outputTokens": 10, "costUsd": 0.5}


def test_conversation_that_goes_on_counts_on(context: MakeContext) -> None:
    adapter = Scripted([said(NOTHING), said(FRONT, tokens=1)])
    old = Asked(prompt="Review it.", session="s1", spent={"outputTokens": 90})

    climb(adapter, context(), old, Rungs())

    assert adapter.asked[1].spent == {"outputTokens": 100, "costUsd": 0.5}


def test_extractor_reads_the_words_of_the_first_run(context: MakeContext) -> None:
    seen: list[ExtractContext] = []

    def extractor(known: ExtractContext) -> Answer:
        seen.append(known)
        return Answer(text="", structured=GOOD, usage={"outputTokens": 2})

    adapter = Scripted([said(NOTHING), said("Still nothing."), said("No.")])

    result = climb(adapter, context(), ASKED, Rungs(find_extractor=lambda: extractor))

    assert (result.meta, result.content, result.rung) == (GOOD, NOTHING, "extractor")
    assert result.usage == {"outputTokens": 32, "costUsd": 1.5}
    assert seen[0].agent_content == NOTHING


def test_extractor_is_not_believed_blindly(context: MakeContext) -> None:
    rungs = Rungs(
        most_corrections=0, find_extractor=lambda: lambda _: Answer(text="", structured=BAD)
    )

    with pytest.raises(NoMeta, match="the extractor's fields"):
        climb(Scripted([said(NOTHING)]), context(), ASKED, rungs)


def test_extractor_may_have_no_answer(context: MakeContext) -> None:
    def extractor(_: ExtractContext) -> Answer:
        raise NoAnswer("auth", "the key is wrong", partial=said("", tokens=2))

    with pytest.raises(NoMeta, match="the extractor: the key is wrong") as caught:
        climb(
            Scripted([said(NOTHING)]),
            context(),
            ASKED,
            Rungs(most_corrections=0, find_extractor=lambda: extractor),
        )

    assert caught.value.usage["outputTokens"] == 12


def test_out_of_nothing_nothing_is_extracted(context: MakeContext) -> None:
    rungs = Rungs(find_extractor=lambda: lambda _: Answer(text="", structured=GOOD))

    with pytest.raises(NoMeta, match="it is empty"):
        climb(Scripted([said(" \n", session=None)]), context(), ASKED, rungs)


def test_trace_tells_what_happened_in_its_order(context: MakeContext) -> None:
    events: list[Mapping[str, Any]] = []
    tool = {"type": "tool", "name": "bash", "input": "ls", "output": "", "ok": True}
    message = {"type": "message", "text": "hm"}
    failure = NoAnswer("auth", "no", partial=Answer(text="", trace=(message,)))
    adapter = Scripted([Answer(text=NOTHING, session="s1", trace=(tool,)), failure])

    with pytest.raises(NoMeta):
        climb(adapter, context(), ASKED, Rungs(note=events.append))

    assert find_odd(events) == []
    problem = events[1].pop("problem")  # type: ignore[attr-defined]  # it is a dict
    assert str(problem).startswith("there is neither front matter nor JSON")
    assert events == [
        tool,
        {"type": "correction"},
        message,
        {"type": "error", "kind": "auth", "message": "no"},
    ]
