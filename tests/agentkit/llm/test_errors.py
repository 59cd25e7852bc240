"""The meaning of refusals by an endpoint."""

import json
from typing import Any

import pytest
from agentkit.endpoints import chat, endpoint
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agentkit.extraction.adapter import AskFailed
from uwf_git.agentkit.llm.endpoint import Endpoint
from uwf_git.agentkit.llm.errors import (
    RequestRefused,
    explain_no_reply,
    read_document,
    refuse_shape,
)
from uwf_git.agentkit.llm.http_client import HttpReply, HttpTrouble, NoReply

NOW_S = 1_760_000_000.0
KEYED = endpoint("https://api.example.com/v1", key="sk-geheim")


def read(
    status: int, body: Any, headers: dict[str, str] | None = None, *, at: Endpoint = KEYED
) -> dict[str, Any]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_document(at, HttpReply(status, headers or {}, raw), now_s=NOW_S)


def refusal(
    status: int, body: Any = b"", headers: dict[str, str] | None = None, *, at: Endpoint = KEYED
) -> AskFailed:
    with pytest.raises(AskFailed) as caught:
        read(status, body, headers, at=at)
    return caught.value


def error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


def test_a_document_passes() -> None:
    assert read(200, chat()) == chat()


def test_a_key_that_is_not_taken_names_its_variable() -> None:
    failure = refusal(401, error("Incorrect API key provided: sk-geheim."))
    assert failure.kind == "auth"
    assert failure.message == (
        "api.example.com answers 401: Incorrect API key provided: ….; "
        "it does not accept the key in OPENAI_API_KEY"
    )
    assert failure.hint == (
        "put the key in OPENAI_API_KEY, or name another variable: "
        "git config --global uwf.llm.keyEnv NAME"
    )


def test_a_key_that_was_not_set_is_reported() -> None:
    failure = refusal(401, error("no key"), at=endpoint("http://x.example/v1"))
    told = "x.example answers 401: no key; no key was sent, since OPENAI_API_KEY is not set"
    assert failure.message == told


def test_what_is_forbidden_may_not_be_the_keys_fault() -> None:
    failure = refusal(403, error("not in your country"))
    assert failure.kind == "auth"
    assert "it may not allow this with the key in OPENAI_API_KEY" in failure.message


def test_a_missing_model_is_named() -> None:
    failure = refusal(404, error("The model does not exist"))
    assert failure.kind == "usage"
    assert failure.message.endswith("404: The model does not exist (model m)")
    assert failure.hint == "see uwf.llm.model and uwf.llm.url (https://api.example.com/v1)"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error("too much", code="context_length_exceeded")),
        (400, error("This model's maximum context length is 8192 tokens, you sent 9000")),
        (400, error("prompt is too long: 210000 tokens > 200000 maximum")),
        (400, error("Input exceeds the context window")),
        (422, error("too many input tokens")),
        (413, b"<html>Payload Too Large</html>"),
    ],
)
def test_a_prompt_that_is_too_long_is_reported(status: int, body: Any) -> None:
    failure = refusal(status, body)
    assert failure.kind == "too-long"
    assert not isinstance(failure, RequestRefused)


@pytest.mark.parametrize(
    "message",
    [
        "response_format is not supported",
        "max_tokens is too large: 999999. This model supports at most 16384 completion tokens",
    ],
)
def test_another_request_might_be_taken(message: str) -> None:
    failure = refusal(400, error(message))
    assert isinstance(failure, RequestRefused)
    assert failure.kind == "model-error"
    assert message in failure.message


@pytest.mark.parametrize(
    ("headers", "reset_at"),
    [
        ({"retry-after": "90"}, 1_760_000_090_000),
        ({"x-ratelimit-reset-requests": "1m"}, 1_760_000_060_000),
        ({}, None),
    ],
)
def test_a_rate_limit_tells_until_when(headers: dict[str, str], reset_at: int | None) -> None:
    failure = refusal(429, error("slow down"), headers)
    assert failure.code == "rate-limited"
    assert (failure.kind, failure.facts.get("resetAt")) == ("rate-limit", reset_at)
    assert failure.facts.get("resetAt") == reset_at
    if headers == {"retry-after": "90"}:
        assert failure.message.endswith("; try again at 2025-10-09 08:54:50 UTC")


@pytest.mark.parametrize("status", [500, 502, 503, 529, 418])
def test_what_is_the_endpoints_own_trouble_is_a_model_error(status: int) -> None:
    failure = refusal(status, error("overloaded"))
    assert failure.kind == "model-error"
    assert failure.message == f"api.example.com answers {status}: overloaded"


@pytest.mark.parametrize("code", [429, "429"])
def test_an_error_in_a_reply_that_says_200_is_one(code: object) -> None:
    assert refusal(200, error("slow down", code=code)).kind == "rate-limit"


def test_an_error_without_a_number_is_a_model_error() -> None:
    failure = refusal(200, error("upstream", code="bad_gateway"))
    assert failure.message == "api.example.com answers 500: upstream"


def test_a_redirect_says_where_to_and_is_not_followed() -> None:
    failure = refusal(308, b"", {"location": "https://evil.example/v1"})
    assert failure.message == (
        "api.example.com redirects to https://evil.example/v1; the key is not sent there"
    )


@pytest.mark.parametrize("body", [b"<html>hello</html>", b"", b"[1]", b'{"a": NaN}', b"\xff" * 9])
def test_response_that_is_no_json_object_is_reported_with_its_type(body: bytes) -> None:
    failure = refusal(200, body, {"content-type": "text/html"})
    assert failure.kind == "bad-output"
    assert f"with {len(body)} bytes of text/html, not JSON" in failure.message
    assert failure.hint is not None
    assert "https://api.example.com/v1" in failure.hint


def test_json_that_is_nested_without_end_is_no_json() -> None:
    assert refusal(200, b'{"a":' + b"[" * 100_000).kind == "bad-output"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"error": "model not loaded"}, "model not loaded"),
        ({"message": "no"}, "no"),
        ({"detail": "no route"}, "no route"),
        (b"Internal\nServer Error", "Internal Server Error"),
    ],
)
def test_the_message_is_found_wherever_it_stands(body: Any, told: str) -> None:
    assert refusal(500, body).message == f"api.example.com answers 500: {told}"


def test_a_page_of_html_says_no_more_than_its_status() -> None:
    assert refusal(404, b"<html>x</html>").message == ("api.example.com answers 404 (model m)")


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        ("timed-out", "timed-out"),
        ("too-much", "too-much-output"),
        ("unreachable", "model-error"),
        ("unknown-host", "model-error"),
        ("untrusted", "model-error"),
        ("broken", "model-error"),
    ],
)
def test_no_reply_has_a_kind(trouble: HttpTrouble, kind: str) -> None:
    failure = explain_no_reply(KEYED, NoReply(trouble, "api.example.com", "x"))
    assert (failure.kind, failure.message) == (kind, "api.example.com: x")


def test_a_reply_of_another_shape_asks_for_the_api() -> None:
    failure = refuse_shape(KEYED)
    assert failure.kind == "bad-output"
    assert failure.hint == (
        "if it has the anthropic API: git config --global uwf.llm.api anthropic"
    )


@given(st.integers(200, 599), st.binary() | st.text().map(str.encode))
def test_no_response_makes_an_error_show_the_key(status: int, body: bytes) -> None:
    echoed = json.dumps(error(f"you sent sk-geheim {body!r}")).encode()
    for raw in (body, echoed):
        failure = attempt(status, raw)
        told = "" if failure is None else f"{failure.message} {failure.hint} {failure.facts}"
        assert "sk-geheim" not in told
        assert failure is None or "\n" not in failure.message


def attempt(status: int, raw: bytes) -> AskFailed | None:
    try:
        read(status, raw, {"location": "x", "content-type": "y"})
    except AskFailed as failure:
        return failure
    return None
