from typing import Any

import pytest
from agentkit.adapters.reading import NOWHERE, make_ended
from agentkit.adapters.replay import SCHEMA, end, replay

from uwf_git.agentkit.extraction.adapter import parse_lines
from uwf_git.agentkit.programs.failures import (
    classify_words,
    explain_no_record,
    explain_words,
    find_last_text,
    find_last_words,
    read_result,
    read_trace,
    with_reset,
)

LOGIN = "log in"


def test_words_tell_the_kind() -> None:
    for words, kind in [
        ("API Error: 429 too busy", "rate-limit"),
        ("exceeded retry limit, last status: 429 Too Many Requests", "rate-limit"),
        ("You've hit your 5-hour limit · resets 3pm", "rate-limit"),
        ("You have exhausted your capacity on this model.", "rate-limit"),
        ("usage limit reached", "rate-limit"),
        ('{"error":{"code":401,"message":"no"}}', "auth"),
        ("Invalid API key · Please run /login", "auth"),
        ("status 413: no", "too-long"),
        ("prompt is too long: 250000 tokens > 200000 maximum", "too-long"),
        ("something else broke", "model-error"),
        ("API Error: 500 oh", "model-error"),
        ("waited 429 seconds", "model-error"),
    ]:
        assert classify_words(words) == kind


def test_status_decides_over_words() -> None:
    assert classify_words("your api key", status=429) == "rate-limit"


def test_words_are_reported_on_one_line_of_limited_length() -> None:
    failure = explain_words("x", "no\nluck " + "y" * 1000, login=LOGIN)

    assert failure.message.startswith("x: no luck yyy")
    assert len(failure.message) < 600


def test_failure_without_words_says_so() -> None:
    assert explain_words("x", " ", login=LOGIN).message == "x: it gave no reason"


def test_login_is_hinted_at_only_if_that_is_the_matter() -> None:
    assert explain_words("x", "unauthorized", login=LOGIN).hint == LOGIN
    assert explain_words("x", "broken", login=LOGIN).hint is None


def test_end_of_a_limit_is_reported_for_limits_alone() -> None:
    limited = with_reset(explain_words("x", "rate limit", login=LOGIN), 1_760_000_000)
    broken = with_reset(explain_words("x", "broken", login=LOGIN), 1_760_000_000)

    assert limited.facts["resetAt"] == 1_760_000_000_000
    assert "2025-10-09 08:53:20 UTC" in str(limited.hint)
    assert "resetAt" not in broken.facts


@pytest.mark.parametrize(
    ("stdout", "stderr", "status", "kind", "message"),
    [
        ("", "", 0, "no-result", "x ended without a result, with exit status 0"),
        ("{}", "note", 0, "no-result", "x ended without a result, with exit status 0: note"),
        ("", "error: no such option", 2, "usage", "… with exit status 2: no such option"),
        ("{}", "error: broken", 1, "no-result", "… with exit status 1: broken"),
        ("", "Error: unauthorized", 1, "auth", "… with exit status 1: unauthorized"),
        ("", "a note", 143, "crashed", "x was killed by signal 15 before it had a result"),
        ("", "Error: odd", 145, "usage", "… with exit status 145: odd"),
    ],
)
def test_end_without_a_record_is_explained(
    stdout: str, stderr: str, status: int, kind: str, message: str
) -> None:
    ended = make_ended(stdout, stderr=stderr, status=status)

    failure = explain_no_record("x", ended, login=LOGIN)

    expected = message.replace("…", "x ended without a result,")
    assert (failure.kind, failure.message) == (kind, expected)


def test_last_error_is_found_among_stack_traces() -> None:
    stderr = b"warning: old\nError: first\n  at f (a.js:1)\nError: second\n   0: <unknown>\n\n"

    assert find_last_words(stderr) == ("second", True)


def test_line_before_a_help_page_is_the_error() -> None:
    stderr = b"Unknown argument: nonsense\nUsage: x [options]\n\n  --help  Show help\n"

    assert find_last_words(stderr) == ("Unknown argument: nonsense", True)
    assert find_last_words(b"usage: x [-h]\nerror: which?\n") == ("which?", True)


@pytest.mark.parametrize("stderr", [b"", b" \n\n", b"\xff\xfe", b"error:\n"])
def test_any_stderr_will_do(stderr: bytes) -> None:
    assert find_last_words(stderr)[1] is False


def said(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"content": content}, **more}


def test_last_text_is_its_own_and_stands_for_an_empty_result() -> None:
    records = [said("First."), said("Last."), said(" "), said("Not I.", parent_tool_use_id="t1")]
    question = end(NOWHERE, schema=SCHEMA).question

    assert find_last_text(records) == "Last."
    for result in ({"is_error": False, "result": ""}, {"is_error": True, "result": "no luck"}):
        assert read_result(result, "object", records, question) == ("Last.", None)
    odd = {"is_error": False, "object": {"other": 1}}
    assert read_result(odd, "object", records, question) == ("Last.", {"other": 1})


def test_retries_are_reported_and_errors_of_the_endpoint_are_no_words() -> None:
    records = parse_lines(replay(NOWHERE, "claude", "error-500").run.stdout)

    trace = list(read_trace(records, None, without=""))

    assert {"type": "warning", "message": "tried again: server_error"} in trace
    assert "message" not in [event["type"] for event in trace]
