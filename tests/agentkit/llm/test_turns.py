from typing import Any

from agentkit.endpoints import Odd, chat, odd

from uwf_git.agentkit.extraction.adapter import AdapterQuestion
from uwf_git.agentkit.llm.turns import LlmTurns

SCHEMA = {"type": "object", "properties": {"words": {"type": "integer"}}, "required": ["words"]}


def question(url: str, prompt: str = "Count.", **more: Any) -> AdapterQuestion:
    return AdapterQuestion(prompt=prompt, settings={"model": "m", "url": url}, **more)


def test_what_was_said_goes_on_with_the_next_question() -> None:
    turns = LlmTurns()
    with odd(Odd(body=chat("one")), Odd(body=chat("two"))) as served:
        first = turns.ask(question(served.url))
        second = turns.ask(question(served.url, "And?", session=first.session))

    told = [message["content"] for message in served.asked[1]["messages"]]
    assert told == ["Count.", "one", "And?"]
    assert (second.text, second.session) == ("two", first.session)
    assert second.trace[0]["type"] == "turn"


def test_way_that_an_endpoint_does_not_take_is_tried_once() -> None:
    turns = LlmTurns()
    refusal = Odd(status=400, body={"error": {"message": "response_format is not known"}})
    answer = Odd(body=chat('{"content": "x", "meta": {"words": 3}}'))
    with odd(refusal, answer, answer) as served:
        first = turns.ask(question(served.url, schema=SCHEMA))
        turns.ask(question(served.url, schema=SCHEMA))

    assert ["response_format" in body for body in served.asked] == [True, False, False]
    assert first.trace[0]["way"] == "tool"
