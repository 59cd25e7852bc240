from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from agentkit.conftest import MakeContext
from agentkit.traces import find_odd

from uwf_git.agentkit.context import ExtractContext
from uwf_git.agentkit.extraction.adapter import AdapterAnswer, AdapterQuestion, AskFailed
from uwf_git.agentkit.extraction.extract import NoMeta
from uwf_git.agentkit.extraction.ladder import Fallbacks, build_correction, extract_with_fallbacks

GOOD = {"approved": True}
BAD = {"approved": "yes"}
FRONT = "---\napproved: true\n---\nFine.\n"
NOTHING = "I have reviewed it. Fine."


@dataclass
class Scripted:
    """An adapter whose answers are known beforehand."""

    answers: list[AdapterAnswer | AskFailed]
    name: str = "scripted"
    takes_schema: bool = False
    resumes: bool = True
    questions: list[AdapterQuestion] = field(default_factory=list)

    def ask(self, question: AdapterQuestion) -> AdapterAnswer:
        self.questions.append(question)
        answer = self.answers.pop(0)
        if isinstance(answer, AskFailed):
            raise answer
        return answer


def said(
    text: str, *, session: str | None = "s1", structured: Any = None, tokens: int = 10
) -> AdapterAnswer:
    usage = {"outputTokens": tokens, "costUsd": 0.5}
    return AdapterAnswer(text=text, session=session, structured=structured, usage=usage)


ASKED = AdapterQuestion(prompt="Review it.")


def test_structured_output_of_the_program_is_the_cheapest(context: MakeContext) -> None:
    adapter = Scripted([said(NOTHING, structured=GOOD)], takes_schema=True)

    result = extract_with_fallbacks(adapter, context(), ASKED, Fallbacks())

    assert (result.meta, result.content, result.rung) == (GOOD, NOTHING, "native")
    assert adapter.questions[0].schema == context().current_role.output_schema


def test_program_that_takes_no_schema_is_given_none(context: MakeContext) -> None:
    adapter = Scripted([said(FRONT)])

    result = extract_with_fallbacks(adapter, context(), ASKED, Fallbacks())

    assert adapter.questions[0].schema is None
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
    result = extract_with_fallbacks(Scripted([said(text)]), context(), ASKED, Fallbacks())

    assert (result.meta, result.rung) == (GOOD, rung)


def test_structured_output_that_does_not_fit_is_no_answer(context: MakeContext) -> None:
    adapter = Scripted([said(FRONT, structured=BAD)], takes_schema=True)

    assert extract_with_fallbacks(adapter, context(), ASKED, Fallbacks()).rung == "front-matter"


def test_what_was_handed_in_by_a_tool_comes_first(context: MakeContext) -> None:
    rungs = Fallbacks(submitted=lambda: {"meta": GOOD, "content": "By the tool."})

    result = extract_with_fallbacks(Scripted([said(FRONT)]), context(), ASKED, rungs)

    assert (result.meta, result.content, result.rung) == (GOOD, "By the tool.", "submitted")


@pytest.mark.parametrize("handed_in", [{"meta": GOOD}, {"meta": GOOD, "content": 1}])
def test_words_are_the_content_if_none_were_handed_in(
    context: MakeContext, handed_in: Mapping[str, Any]
) -> None:
    rungs = Fallbacks(submitted=lambda: handed_in)

    assert (
        extract_with_fallbacks(Scripted([said(NOTHING)]), context(), ASKED, rungs).content
        == NOTHING
    )


def test_correction_goes_on_with_the_conversation(context: MakeContext) -> None:
    adapter = Scripted([said(NOTHING), said("---\napproved: false\n---\nNo.", tokens=5)])

    result = extract_with_fallbacks(adapter, context(), ASKED, Fallbacks())

    assert (result.meta, result.rung) == ({"approved": False}, "front-matter-corrected")
    assert [question.session for question in adapter.questions] == [None, "s1"]
    assert "there is neither front matter nor JSON" in adapter.questions[1].prompt
    assert ASKED.prompt not in adapter.questions[1].prompt


def test_correction_costs_but_the_first_run_stays_the_content(context: MakeContext) -> None:
    adapter = Scripted([said(NOTHING), said("---\napproved: maybe\n---"), said(FRONT, tokens=1)])

    result = extract_with_fallbacks(adapter, context(), ASKED, Fallbacks())

    assert (result.content, result.session) == (NOTHING, "s1")
    assert result.usage == {"outputTokens": 21, "costUsd": 1.5}
    assert [question.spent for question in adapter.questions] == [
        {},
        {"outputTokens": 10, "costUsd": 0.5},
        {"outputTokens": 20, "costUsd": 1.0},
    ]
    assert "approved" in adapter.questions[2].prompt


def test_agent_is_corrected_twice_and_no_more(context: MakeContext) -> None:
    adapter = Scripted([said(NOTHING)] * 4)

    with pytest.raises(NoMeta) as caught:
        extract_with_fallbacks(adapter, context(), ASKED, Fallbacks())

    assert len(adapter.questions) == 3
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
def test_agent_without_a_conversation_is_not_corrected(
    context: MakeContext, adapter: Scripted
) -> None:
    with pytest.raises(NoMeta):
        extract_with_fallbacks(adapter, context(), ASKED, Fallbacks())


@pytest.mark.parametrize("session", ["s2", None])
def test_agent_that_forgot_the_conversation_is_not_believed(
    context: MakeContext, session: str | None
) -> None:
    adapter = Scripted([said(NOTHING), said(FRONT, session=session)])

    with pytest.raises(NoMeta, match="lost the conversation"):
        extract_with_fallbacks(adapter, context(), ASKED, Fallbacks())


def test_unanswered_correction_is_reported(context: MakeContext) -> None:
    failure = AskFailed("rate-limit", "too many requests", partial=said("", tokens=3))

    with pytest.raises(NoMeta, match="asked again: too many requests") as caught:
        extract_with_fallbacks(Scripted([said(NOTHING), failure]), context(), ASKED, Fallbacks())

    assert (caught.value.text, caught.value.usage["outputTokens"]) == (NOTHING, 13)


def test_first_question_without_an_answer_ends_it(context: MakeContext) -> None:
    failure = AskFailed("auth", "log in first", hint="claude login")

    with pytest.raises(AskFailed) as caught:
        extract_with_fallbacks(Scripted([failure]), context(), ASKED, Fallbacks())

    assert caught.value is failure


def test_conversation_that_is_gone_begins_anew(context: MakeContext) -> None:
    adapter = Scripted([AskFailed("no-session", "unknown session"), said(FRONT, session="s2")])
    old = AdapterQuestion(prompt="Review it.", session="s1", spent={"outputTokens": 99})

    result = extract_with_fallbacks(adapter, context(), old, Fallbacks())

    assert [(each.session, each.prompt) for each in adapter.questions] == [
        ("s1", "Review it."),
        (None, "Review it."),
    ]
    assert (result.session, dict(adapter.questions[1].spent)) == ("s2", {})


def test_conversation_that_was_silently_forgotten_is_noted(context: MakeContext) -> None:
    events: list[Mapping[str, Any]] = []
    adapter = Scripted([said(NOTHING, session="s2"), said(FRONT, session="s2", tokens=1)])
    old = AdapterQuestion(prompt="Review it.", session="s1", spent={"outputTokens": 99})

    extract_with_fallbacks(adapter, context(), old, Fallbacks(note=events.append))

    assert [event["type"] for event in events] == ["warning", "correction", "rung"]
    assert adapter.questions[1].spent == {"outputTokens": 10, "costUsd": 0.5}


def test_conversation_that_goes_on_counts_on(context: MakeContext) -> None:
    adapter = Scripted([said(NOTHING), said(FRONT, tokens=1)])
    old = AdapterQuestion(prompt="Review it.", session="s1", spent={"outputTokens": 90})

    extract_with_fallbacks(adapter, context(), old, Fallbacks())

    assert adapter.questions[1].spent == {"outputTokens": 100, "costUsd": 0.5}


def test_extractor_reads_the_words_of_the_first_run(context: MakeContext) -> None:
    seen: list[ExtractContext] = []

    def extractor(known: ExtractContext) -> AdapterAnswer:
        seen.append(known)
        return AdapterAnswer(text="", structured=GOOD, usage={"outputTokens": 2})

    adapter = Scripted([said(NOTHING), said("Still nothing."), said("No.")])

    result = extract_with_fallbacks(
        adapter, context(), ASKED, Fallbacks(find_extractor=lambda: extractor)
    )

    assert (result.meta, result.content, result.rung) == (GOOD, NOTHING, "extractor")
    assert result.usage == {"outputTokens": 32, "costUsd": 1.5}
    assert seen[0].agent_content == NOTHING


def test_extractor_is_not_believed_blindly(context: MakeContext) -> None:
    rungs = Fallbacks(
        most_corrections=0, find_extractor=lambda: lambda _: AdapterAnswer(text="", structured=BAD)
    )

    with pytest.raises(NoMeta, match="the extractor's fields"):
        extract_with_fallbacks(Scripted([said(NOTHING)]), context(), ASKED, rungs)


def test_extractor_may_have_no_answer(context: MakeContext) -> None:
    def extractor(_: ExtractContext) -> AdapterAnswer:
        raise AskFailed("auth", "the key is wrong", partial=said("", tokens=2))

    with pytest.raises(NoMeta, match="the extractor: the key is wrong") as caught:
        extract_with_fallbacks(
            Scripted([said(NOTHING)]),
            context(),
            ASKED,
            Fallbacks(most_corrections=0, find_extractor=lambda: extractor),
        )

    assert caught.value.usage["outputTokens"] == 12


def test_out_of_nothing_nothing_is_extracted(context: MakeContext) -> None:
    rungs = Fallbacks(find_extractor=lambda: lambda _: AdapterAnswer(text="", structured=GOOD))

    with pytest.raises(NoMeta, match="it is empty"):
        extract_with_fallbacks(Scripted([said(" \n", session=None)]), context(), ASKED, rungs)


def test_trace_tells_what_happened_in_its_order(context: MakeContext) -> None:
    events: list[Mapping[str, Any]] = []
    tool = {"type": "tool", "name": "bash", "input": "ls", "output": "", "ok": True}
    message = {"type": "message", "text": "hm"}
    failure = AskFailed("auth", "no", partial=AdapterAnswer(text="", trace=(message,)))
    adapter = Scripted([AdapterAnswer(text=NOTHING, session="s1", trace=(tool,)), failure])

    with pytest.raises(NoMeta):
        extract_with_fallbacks(adapter, context(), ASKED, Fallbacks(note=events.append))

    assert find_odd(events) == []
    problem = events[1].pop("problem")  # type: ignore[attr-defined]  # it is a dict
    assert str(problem).startswith("there is neither front matter nor JSON")
    assert events == [
        tool,
        {"type": "correction"},
        message,
        {"type": "error", "kind": "auth", "message": "no"},
    ]


def test_what_was_left_in_the_output_file_comes_before_all_others(context: MakeContext) -> None:
    rungs = Fallbacks(reported=lambda: (GOOD, ""), submitted=lambda: {"meta": GOOD})
    adapter = Scripted([said(NOTHING, structured=GOOD)])

    result = extract_with_fallbacks(adapter, context(), ASKED, rungs)

    assert (result.meta, result.content, result.rung) == (GOOD, NOTHING, "file")


@pytest.mark.parametrize("left", [(BAD, ""), (None, "is not JSON")])
def test_output_file_that_does_not_fit_is_the_problem_that_is_told(
    context: MakeContext, left: tuple[Any, str]
) -> None:
    adapter = Scripted([said(NOTHING), said(FRONT)])

    result = extract_with_fallbacks(adapter, context(), ASKED, Fallbacks(reported=lambda: left))

    assert result.rung == "front-matter-corrected"
    assert (left[1] or "approved") in adapter.questions[1].prompt


def test_agent_that_said_nothing_may_have_left_its_report(context: MakeContext) -> None:
    silent = AskFailed("no-result", "it printed nothing")
    rungs = Fallbacks(reported=lambda: (GOOD, ""))

    result = extract_with_fallbacks(Scripted([silent]), context(), ASKED, rungs)

    assert (result.meta, result.content, result.rung) == (GOOD, "", "file")
    with pytest.raises(AskFailed):
        extract_with_fallbacks(Scripted([silent]), context(), ASKED, Fallbacks())


Golden = Callable[[str, str | bytes], None]


def test_correction_is_as_written_down(context: MakeContext, golden: Golden) -> None:
    role = context().current_role

    golden(
        "prompts/correction.md", build_correction("approved: 'yes' is not of type 'boolean'", role)
    )


def test_problem_is_one_line_and_not_long(context: MakeContext) -> None:
    told = build_correction("first\n# How to answer\n" + "x" * 5_000, context().current_role)

    line = told.splitlines()[0]
    assert "first # How to answer xxx" in line
    assert len(line) < 1_200
