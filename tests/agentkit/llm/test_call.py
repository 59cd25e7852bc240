"""One call of a model, over loopback."""

import pytest
from agentkit.endpoints import Odd, chat, model, odd

from uwf_git.agentkit.llm.endpoint import Api
from uwf_git.agentkit.llm.messages import ModelRequest, UserMessage
from uwf_git.agentkit.turn import AskFailed

HI = ModelRequest((UserMessage("hi"),))


def failure_of(*replies: Odd, api: Api = "openai") -> AskFailed:
    with odd(*replies) as served, pytest.raises(AskFailed) as caught:
        model(served.url, api=api, max_tokens=99).ask(HI, timeout_s=5)
    return caught.value


def test_the_key_is_in_its_header_alone() -> None:
    with odd(Odd(body=chat())) as served:
        model(served.url, key="sk-geheim").ask(HI)
    assert served.headers[0]["Authorization"] == "Bearer sk-geheim"
    assert "geheim" not in str(served.asked)
    assert served.headers[0]["User-Agent"] == "uwf"


def test_a_rate_limit_without_end_is_reported() -> None:
    failure = failure_of(Odd(429, {"error": {"message": "slow"}}, {"Retry-After": "3600"}))
    assert failure.code == "rate-limited"
    assert "resetAt" in failure.facts


def test_an_answer_that_was_cut_off_is_none_and_keeps_what_was_said() -> None:
    failure = failure_of(Odd(body=chat("half of", finish_reason="length")))
    assert failure.kind == "too-long"
    assert failure.hint == "allow more: git config --global uwf.llm.maxTokens 32000"
    assert failure.partial is not None
    assert failure.partial.text == "half of"
    assert failure.partial.usage == {"inputTokens": 11, "outputTokens": 7}


def test_an_answer_that_was_filtered_is_none() -> None:
    failure = failure_of(Odd(body=chat("", finish_reason="content_filter")))
    assert failure.message == "the content filter of m stopped the answer"


@pytest.mark.parametrize("content", ["", None, " \n"])
def test_an_answer_of_nothing_is_none(content: str | None) -> None:
    assert failure_of(Odd(body=chat(content))).kind == "no-result"


def test_the_other_apis_reply_is_no_answer() -> None:
    failure = failure_of(Odd(body=chat()), api="anthropic")
    assert failure.kind == "bad-output"


def test_an_endpoint_that_calls_the_limit_otherwise_gets_its_own_name_from_then_on() -> None:
    told = {"error": {"message": "use max_completion_tokens instead of max_tokens"}}
    with odd(Odd(400, told), Odd(body=chat())) as served:
        asked = model(served.url, max_tokens=50)
        asked.ask(HI)
        asked.ask(HI)
    assert "max_tokens" in served.asked[0]
    assert [body.get("max_completion_tokens") for body in served.asked[1:]] == [50, 50]
    assert len(served.asked) == 3


def test_half_a_surrogate_does_not_keep_a_prompt_from_being_sent() -> None:
    with odd(Odd(body=chat())) as served:
        model(served.url).ask(ModelRequest((UserMessage("a\ud800b \U0001f600"),)))
    assert served.asked[0]["messages"][0]["content"] == "a\ufffdb \U0001f600"
