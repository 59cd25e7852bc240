from uwf_git.agentkit.programs.command import Report, classify_words, find_last_words
from uwf_git.agentkit.turn import AdapterAnswer

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
        ("PERMISSION_DENIED: the caller may not use this model", "auth"),
        ("cannot open ~/.x/sessions (permission denied)", "model-error"),
        ("Disk quota exceeded (os error 122)", "model-error"),
        ("waited 429 seconds", "model-error"),
    ]:
        assert classify_words(words) == kind


def test_colours_hide_no_error() -> None:
    said = "\x1b[91m\x1b[1mError: \x1b[0mModel not found: gpt-9\n  at main.js\n"
    assert find_last_words(said.encode()) == ("Model not found: gpt-9", True)


def test_end_of_a_limit_is_reported_for_limits_alone() -> None:
    limited, broken = (
        Report(AdapterAnswer(text=""), error=said, reset_s=1_760_000_000).explain("x", login=LOGIN)
        for said in ("rate limit", "broken")
    )

    assert limited.facts["resetAt"] == 1_760_000_000_000
    assert "2025-10-09 08:53:20 UTC" in str(limited.hint)
    assert "resetAt" not in broken.facts
