from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.commands.inspect.read import Found, compile_pattern, find_in
from uwf_git.engine.masking import MASK


def found(text: str, within: str, **how: Any) -> Found | None:
    asked = {"ignore_case": False, "is_regex": False} | how
    secrets = asked.pop("secrets", ())
    return find_in(compile_pattern(text, **asked), within, secrets)


@given(st.text(min_size=1), st.text(), st.text())
def test_what_stands_in_a_text_is_found(needle: str, before: str, after: str) -> None:
    assert found(needle, before + needle + after) is not None


@given(st.text(min_size=1), st.text())
def test_what_does_not_is_not(needle: str, text: str) -> None:
    assert (found(needle, text) is None) is (needle not in text)


def test_every_hit_is_counted_and_the_first_is_shown() -> None:
    assert found("a.c", "xx a.c\n\n  abc  a.c") == Found("xx a.c abc a.c", 2)


def test_long_hit_is_cut_too() -> None:
    told = found("x+", "x" * 1000, is_regex=True)

    assert told is not None
    assert told.excerpt == "x" * 160 + "…"


def test_capitals_count_unless_they_shall_not() -> None:
    assert found("Straße", "STRAẞE") is None
    assert found("Éa", "éA", ignore_case=True) == Found("éA", 1)


@pytest.mark.parametrize("text", ["(", "a{99999999999}", "(?P<a>x)(?P<a>y)", "*"])
def test_invalid_regular_expression_is_reported(text: str) -> None:
    with refuses("bad-pattern", match="cannot be searched for"):
        compile_pattern(text, ignore_case=False, is_regex=True)
    assert found(text, f"- {text} -") is not None


def test_secret_is_masked_whole_wherever_the_excerpt_is_cut() -> None:
    secret = "sk-Abc123" * 4
    text = "key " + secret + " and a needle, " + secret

    told = found("needle", text, secrets=(secret,))

    assert told == Found(f"key {MASK} and a needle, {MASK}", 1)
    assert found("Abc", text, secrets=(secret,)) == Found(MASK, 8)
