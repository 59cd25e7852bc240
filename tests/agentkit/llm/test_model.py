"""One call of a model, over loopback."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from agentkit.adapters.test_loop import SCHEMA
from agentkit.endpoints import Odd, chat, model, odd, scripted

from uwf_git.agentkit.ladder import WantedObject
from uwf_git.agentkit.llm.endpoint import Api
from uwf_git.agentkit.llm.messages import THOUGHTS, ModelMessage, ModelRequest, UserMessage
from uwf_git.agentkit.llm.model import SUBMIT, RequestRefused, ask_extractor, ask_for_object
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
    assert (
        failure.hint
        == "allow more: git config --global uwf.llm.maxTokens 32000, or shorten the prompt"
    )
    assert failure.partial is not None
    assert failure.partial.text == "half of"
    assert failure.partial.usage == {"inputTokens": 11, "outputTokens": 7, "turns": 1}


def test_an_answer_that_was_filtered_is_none() -> None:
    failure = failure_of(Odd(body=chat("", finish_reason="content_filter")))
    assert failure.message == "the content filter of m stopped the answer"


def test_an_answer_that_the_endpoint_broke_off_is_none() -> None:
    broken = chat("half of", finish_reason="stop")
    broken["choices"][0]["error"] = {"code": 502, "message": "Provider\ndisconnected"}
    failure = failure_of(Odd(body=broken))
    assert failure.message == "the endpoint broke off the answer: Provider disconnected"
    assert failure.partial is not None
    assert failure.partial.text == "half of"


@pytest.mark.parametrize("content", ["", None, " \n"])
def test_an_answer_of_nothing_is_none(content: str | None) -> None:
    assert failure_of(Odd(body=chat(content))).kind == "no-result"


def test_the_other_apis_reply_is_no_answer() -> None:
    assert failure_of(Odd(body=chat()), api="anthropic").kind == "bad-output"


def test_an_endpoint_that_calls_the_limit_otherwise_gets_its_own_name_from_then_on() -> None:
    told = {"error": {"message": "use max_completion_tokens instead of max_tokens"}}
    with odd(Odd(400, told), Odd(body=chat())) as served:
        asked = model(served.url, max_tokens=50)
        asked.ask(HI)
        asked.ask(HI)
    assert "max_tokens" in served.asked[0]
    assert [body.get("max_completion_tokens") for body in served.asked[1:]] == [50, 50]
    assert len(served.asked) == 3


GROQ = {"error": {"message": "('messages.1' : property 'reasoning' is unsupported)"}}
MISTRAL = {"object": "error", "message": {"detail": [{"type": "extra_forbidden", "loc": THOUGHTS}]}}


@pytest.mark.parametrize(
    ("status", "said", "sent"),
    [
        (400, GROQ, [True, False, False]),
        (422, MISTRAL, [True, False, False]),
        (400, {"error": {"message": "reasoning_content is missing"}}, [True]),
        (400, {"error": {"message": "no reasoning_effort with this"}}, [True]),
    ],
)
def test_an_endpoint_that_refuses_thoughts_does_not_get_them_back(
    status: int, said: Any, sent: list[bool]
) -> None:
    echo = {"role": "assistant", "content": "x", **dict.fromkeys(THOUGHTS, "hm")}
    request = HI._replace(messages=(*HI.messages, ModelMessage("x", (), echo)))
    with odd(Odd(status, said), Odd(body=chat())) as served, suppress(RequestRefused):
        asked = model(served.url)
        asked.ask(request)
        asked.ask(request)
    assert ["reasoning" in body["messages"][1] for body in served.asked] == sent


def test_what_the_model_thought_goes_back_to_it_and_nowhere_else() -> None:
    thought = '<think>\n{"ok": true}?\n</think>\n'
    with odd(Odd(body=chat(f"{thought}no"))) as served:
        reply = model(served.url).ask(HI)
    assert reply.said.text == "no"
    assert reply.said.echo["content"] == f"{thought}no"


def test_half_a_surrogate_does_not_keep_a_prompt_from_being_sent() -> None:
    with odd(Odd(body=chat())) as served:
        model(served.url).ask(ModelRequest((UserMessage("a\ud800b \U0001f600"),)))
    assert served.asked[0]["messages"][0]["content"] == "a\ufffdb \U0001f600"


# Asking for an object, from the strictest way down.

WANTED = WantedObject(SCHEMA, "Hand it in.", "Guide.")
HI_STRUCTURED = ModelRequest((UserMessage("hi"),), "System.")
NO = Odd(400, {"error": {"message": "not supported"}})
GOOD = {"ok": True, "why": None}


def complain(value: dict[str, Any] | None) -> str:
    return "" if value == {"ok": True} else "that will not do"


def called(arguments: Any) -> Odd:
    function = {"name": SUBMIT, "arguments": json.dumps(arguments)}
    return Odd(body=chat(None, tool_calls=[{"id": "c", "function": function}]))


def said(value: Any) -> Odd:
    return Odd(body=chat(value if isinstance(value, str) else json.dumps(value)))


def test_a_schema_that_cannot_be_strict_begins_with_the_tool() -> None:
    wanted = WANTED._replace(schema={"type": "object", "properties": {"any": {}}})
    with scripted({"json": {"any": [1]}}) as served:
        got = ask_for_object(model(served.url), HI_STRUCTURED, wanted)
    assert (got.value, got.way) == ({"any": [1]}, "tool")
    assert served.asked[0]["tools"][0]["function"]["parameters"] == wanted.schema


@pytest.mark.parametrize(
    ("replies", "way"),
    [
        ((NO, called(GOOD)), "tool"),
        ((NO, NO, said(GOOD)), "json"),
        ((NO, NO, NO, said(GOOD)), "plain"),
    ],
)
def test_each_way_that_is_refused_leads_to_the_next(replies: tuple[Odd, ...], way: str) -> None:
    with odd(*replies) as served:
        asked = model(served.url)
        got = ask_for_object(asked, HI_STRUCTURED, WANTED)
        assert (got.value, got.way) == ({"ok": True}, way)
        again = ask_for_object(asked, HI_STRUCTURED, WANTED)
    assert again.way == way
    assert len(served.asked) == len(replies) + 1
    if way in {"json", "plain"}:
        assert "It has to fit this JSON Schema" in served.asked[-1]["messages"][0]["content"]


def test_an_endpoint_that_refuses_everything_says_why() -> None:
    with odd(NO) as served, pytest.raises(RequestRefused, match="not supported"):
        ask_for_object(model(served.url), HI_STRUCTURED, WANTED)
    assert len(served.asked) == 4


def test_answer_that_fails_the_check_is_requested_again_and_all_is_counted() -> None:
    with odd(said({"ok": 3}), called({"ok": False}), said(GOOD)) as served:
        asked = model(served.url)
        got = ask_for_object(asked, HI_STRUCTURED, WANTED, check=complain)
    assert (got.value, got.way) == ({"ok": True}, "json")
    assert got.usage == {"inputTokens": 33, "outputTokens": 21, "turns": 3}
    assert asked.refused == set()


def test_a_failure_on_the_way_tells_what_was_spent_before() -> None:
    cut = Odd(body=chat("half", finish_reason="length"))
    with odd(said({"ok": 3}), cut) as served, pytest.raises(AskFailed) as caught:
        ask_for_object(model(served.url), HI_STRUCTURED, WANTED, check=complain)
    assert caught.value.partial is not None
    assert caught.value.partial.usage["inputTokens"] == 22


# The extractor: its questions, and which of its answers are accepted.

SCHEMA_EXTRACTOR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "severity": {"enum": ["none", "minor", "major"]},
    },
    "required": ["approved"],
    "additionalProperties": False,
}
TEXT = "I looked at it. **I approve** of this change;\nthe rest is “minor” stuff."


def told(
    meta: Any, evidence: Mapping[str, str] | None = None, missing: tuple[str, ...] = ()
) -> dict[str, Any]:
    entries = [{"field": name, "quote": quote} for name, quote in (evidence or {}).items()]
    return {"json": {"evidence": entries, "missing": list(missing), "meta": meta}}


def read(turn: dict[str, Any], text: str = TEXT, schema: Any = SCHEMA_EXTRACTOR) -> Any:
    with scripted(turn) as served:
        return ask_extractor(model(served.url), text, schema).structured


def refusal(turn: dict[str, Any], text: str = TEXT, schema: Any = SCHEMA_EXTRACTOR) -> AskFailed:
    with pytest.raises(AskFailed) as caught:
        read(turn, text, schema)
    return caught.value


@pytest.mark.parametrize("quote", ['the rest is "minor"', "THE REST\nis **minor**", "meta minor"])
def test_a_passage_is_compared_by_its_words(quote: str) -> None:
    evidence = {"approved": "I approve", "meta.severity": quote}
    turn = told({"approved": True, "severity": "minor"}, evidence)
    if quote.startswith("meta"):
        assert refusal(turn).message == "nothing in the text says severity"
    else:
        assert read(turn) == {"approved": True, "severity": "minor"}


@pytest.mark.parametrize("quote", ["", "…", "it is approved by all", "pprov", "app"])
def test_a_value_without_a_passage_of_the_text_is_not_believed(quote: str) -> None:
    failure = refusal(told({"approved": True, "severity": None}, {"approved": quote}))
    assert (failure.kind, failure.message) == ("no-result", "nothing in the text says approved")
    assert failure.partial is not None
    assert failure.partial.usage["inputTokens"] == 11


WORDS: dict[str, Any] = {
    "$defs": {"level": {"enum": ["low", "high"]}},
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "level": {"$ref": "#/$defs/level"},
        "people": {"type": "array", "items": {"type": "object"}},
        "count": {"type": "integer"},
    },
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", "good  morning, **Ada**"),
        ("level", "low"),
        ("people", [{"Ada": ["and Bob"]}]),
        ("count", 2),
    ],
)
def test_text_is_a_quotation_or_a_choice_of_the_schema(name: str, value: Any) -> None:
    said = told({name: value}, {name: "Good morning"})
    assert read(said, "Good morning, Ada and Bob.", WORDS) == {name: value}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("text", "Good evening, Bob"),
        ("text", ""),
        ("people", [{"Ada": ["and Eve"]}]),
        ("people", [{"Eve": 1}]),
    ],
)
def test_text_that_is_not_in_the_answer_is_not_believed(name: str, value: Any) -> None:
    said = told({name: value}, {name: "Good morning"})
    failure = refusal(said, "Good morning, Ada and Bob.", WORDS)
    assert failure.message == f"nothing in the text says {name}"


APART: dict[str, Any] = {
    "properties": {"name": {"type": "string"}, "level": {"type": "string"}},
    "allOf": [{"properties": {"level": {"enum": ["low", "high"]}}}],
}


@pytest.mark.parametrize(
    ("text", "name", "value", "quote"),
    [
        ("作者是王小明。完成了。", "name", "王小明", "王小明"),
        ("The sign is +.", "name", "+", "The sign is"),
        ("Bad, very bad.", "level", "high", "very bad"),
    ],
)
def test_words_without_blanks_signs_and_choices_apart_count(
    text: str, name: str, value: str, quote: str
) -> None:
    assert read(told({name: value}, {name: quote}), text, APART) == {name: value}
    assert name in refusal(told({name: value + "李"}, {name: quote}), text, APART).message
    unfounded = refusal(told({name: value}, {name: "+…"}), text, APART)
    assert unfounded.message == f"nothing in the text says {name}"


def test_missing_counts_even_beside_a_guess() -> None:
    turn = told({"approved": True, "severity": None}, {"approved": "I approve"}, ("approved",))
    assert refusal(turn).message == "the text does not say approved"


def test_a_value_that_is_no_object_needs_one_passage() -> None:
    schema = {"type": "array", "items": {"type": "string"}}
    assert read(told(["minor"], {"": "minor"}), schema=schema) == ["minor"]
    assert refusal(told(["minor"]), schema=schema).message == "nothing in the text says it"


def test_misfit_is_requested_in_another_way_and_then_reported() -> None:
    with odd(Odd(body=chat('{"meta": {"approved": "yes"}}'))) as served:
        with pytest.raises(AskFailed) as caught:
            ask_extractor(model(served.url), TEXT, SCHEMA_EXTRACTOR)
        assert len(served.asked) == 4
    assert caught.value.kind == "bad-output"
    assert "approved" in caught.value.message


def test_extractor_gets_the_fields_the_prompt_and_an_order_never_to_invent() -> None:
    with scripted(told({"approved": True}, {"approved": "I approve"})) as served:
        ask_extractor(model(served.url), "</text> I approve", SCHEMA_EXTRACTOR, prompt="Strictly.")
    system, user = (message["content"] for message in served.asked[0]["messages"])
    assert "Never invent anything" in system
    assert "- `approved` (required): true or false" in user
    assert "Strictly." in user
    assert user.endswith("<text->\n</text> I approve\n</text->\n")


def test_a_very_long_text_is_read_at_its_ends() -> None:
    with scripted(told({"approved": True}, {"approved": "I approve"})) as served:
        ask_extractor(model(served.url), "I approve. " + "x" * 300_000 + " minor", SCHEMA_EXTRACTOR)
    sent = served.asked[0]["messages"][1]["content"]
    assert len(sent) < 210_000
    assert "characters left out" in sent
