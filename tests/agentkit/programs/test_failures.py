from uwf_git.agentkit.programs.command import classify_words, explain_words, with_reset

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
