import pytest
from agentkit.adapters.reading import make_ended

from uwf_git.agentkit.programs.failures import (
    classify_words,
    explain_no_record,
    explain_words,
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
