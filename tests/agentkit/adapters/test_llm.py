"""uwf-llm, against a scripted model."""

from typing import Any

import pytest
from agentkit.conftest import MakeContext, Turn, failure_of
from agentkit.endpoints import Odd, chat, odd, scripted
from agentkit.traces import find_odd

from uwf_git.agentkit.adapters.model import LlmAdapter
from uwf_git.agentkit.ladder import Fallbacks, NoMeta, extract_with_fallbacks
from uwf_git.agentkit.turn import AdapterQuestion

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"words": {"type": "integer"}},
    "required": ["words"],
}


def question(url: str, *, prompt: str = "count", **given: Any) -> AdapterQuestion:
    settings = {"url": url, "model": "m", **given.pop("settings", {})}
    return AdapterQuestion(prompt=prompt, settings=settings, **given)


@pytest.mark.parametrize(("api", "way"), [("openai", "schema"), ("anthropic", "tool")])
def test_an_answer_has_its_text_its_fields_and_what_it_cost(api: str, way: str) -> None:
    with scripted({"json": {"content": "There are 3.", "meta": {"words": 3}}}) as served:
        answer = LlmAdapter().ask(question(served.url, schema=SCHEMA, settings={"api": api}))
    assert (answer.text, answer.structured) == ("There are 3.", {"words": 3})
    assert answer.usage["turns"] == 1
    assert answer.trace[0]["type"] == "turn"
    assert answer.trace[0]["way"] == way
    assert find_odd(answer.trace) == []


@pytest.mark.parametrize(
    ("said", "meta", "text"),
    [
        ('{"content": "", "meta": {"words": 3}}', {"words": 3}, ""),
        ('```json\n{"words": 3}\n```', {"words": 3}, ""),
        ('I counted.\n{"words": 3}', {"words": 3}, None),
        ('---\nwords: 7\n---\nThe docs have {"words": 3}.', None, None),
    ],
)
def test_the_object_itself_is_no_text_of_the_answer(said: str, meta: Any, text: str | None) -> None:
    with odd(Odd(body=chat(said))) as served:
        answer = LlmAdapter().ask(question(served.url, schema=SCHEMA))
    assert (answer.text, answer.structured) == (said if text is None else text, meta)


def test_without_a_schema_the_words_are_the_answer() -> None:
    with scripted({"text": "hello"}) as served:
        answer = LlmAdapter().ask(question(served.url))
    assert (answer.text, answer.structured) == ("hello", None)
    assert "response_format" not in served.asked[0]


def test_a_correction_goes_on_with_the_conversation() -> None:
    adapter = LlmAdapter()
    with scripted({"json": {"content": "x", "meta": {"words": 3}}}) as served:
        first = adapter.ask(question(served.url, schema=SCHEMA))
        again = adapter.ask(
            question(served.url, schema=SCHEMA, prompt="Wrong.", session=first.session)
        )
    assert again.session == first.session
    said = [(message["role"], message["content"]) for message in served.asked[1]["messages"]]
    assert [role for role, _ in said] == ["system", "user", "assistant", "user"]
    assert (said[1][1], said[3][1]) == ("count", "Wrong.")


def test_a_conversation_of_another_process_is_not_known() -> None:
    asked = question("http://127.0.0.1:9", session="llm-1")
    assert failure_of(lambda: LlmAdapter().ask(asked)).kind == "no-session"


def test_on_the_ladder_words_without_fields_end_with_the_words_kept(context: MakeContext) -> None:
    with odd(Odd(body=chat("I refuse."))) as served, pytest.raises(NoMeta) as caught:
        extract_with_fallbacks(LlmAdapter(), context(), question(served.url), Fallbacks())
    assert caught.value.text == "I refuse."
    assert len(served.asked) == 3


def test_the_program_plays_a_turn(turn: Turn) -> None:
    with scripted({"json": {"content": "Three words.", "meta": {"words": 3}}}) as served:
        words = ("--url", served.url, "--model", "m", turn.thread)
        ran = turn.adapter("llm", *words, OPENAI_API_KEY="sk-geheim")
    assert ran.status == 0, ran.err
    assert '"meta": {"words": 3}' in ran.out
    assert "geheim" not in ran.out + ran.err
