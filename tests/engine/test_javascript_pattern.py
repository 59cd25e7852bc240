"""The answers are those of node 20."""

import re

import pytest

from uwf_git.engine.jsonata_functions import JavaScriptPattern


def found(pattern: str, text: str, flags: str = "") -> bool:
    compiled = JavaScriptPattern(pattern, ignore_case="i" in flags, by_line="m" in flags)
    return compiled.search(text) is not None


def test_pattern_is_found_as_in_javascript() -> None:
    for pattern, text, flags in [
        (r"^abc$", "abc", ""),
        (r"^DEF$", "abc\ndef\n", "im"),
        (r"^abc$", "abc\r\ndef", "m"),
        (r"^$", "", ""),
        (r"a\b", "a\u00e9", ""),
        (r"\W", "\u00e9", ""),
        (r"[\W]", "\u00e9", ""),
        (r"[^\w]", "\u00e9", ""),
        (r"[\D]", "\u0663", ""),
        (r"\s[\s]", "\u00a0\ufeff", ""),
        (r"\S", "\x1c", ""),
        (r"[\S]", "\x1c", ""),
        (r"a[\s\S]b", "a\nb", ""),
        (r"^[\w.-]+$", "x.y-z", ""),
        (r"^[\w-.]+$", "x.y-z", ""),
        (r"^[+-\d]+$", "-5", ""),
        (r"\A\Z", "AZ", ""),
        (r"[\A]", "A", ""),
        (r"[^]", "\n", ""),
        (r"x{,3}", "x{,3}", ""),
        (r"a\{2}+", "a{2}}", ""),
        (r"(?<=b)a(?!c)(?:d)(?=e)", "bade", ""),
        (r"(a)\1", "aa", ""),
        (r"\u00e9\/", "\u00e9/", ""),
        (r"a+?b", "aab", ""),
        (r"[.$^]", "$", ""),
        (r"^[^\W]$", "K", "i"),
        (r"^[\W\u00e4][A-Z]\w\u00e4", "\u017fik\u00c4", "i"),
    ]:
        assert found(pattern, text, flags)


@pytest.mark.parametrize(
    ("pattern", "text", "flags"),
    [
        (r"^abc$", "abc\n", ""),
        (r"^def$", "abc\ndef", ""),
        (r"\d", "\u0663", ""),
        (r"\w", "\u00e9", ""),
        (r"[\w]", "\u00e9", ""),
        (r"\s", "\x1c", ""),
        (r"a.b", "a\rb", ""),
        (r"a.b", "a\u2028b", ""),
        (r"[]", "a]", ""),
        (r"^[\w-z]$", "{", ""),
        (r"[.]", "a", ""),
        (r"\W", "kKsSiI", "i"),
        (r"[\W-]", "kKsSiI", "i"),
        (r"[\W\u00e4]", "kKsSiI", "i"),
        (r"\w|i|[a-z]|s|k", "\u0130\u0131\u017f\u212a", "i"),
        ("\u1e9e", "\u00df", "i"),
    ],
)
def test_pattern_is_not_found_as_in_javascript(pattern: str, text: str, flags: str) -> None:
    assert not found(pattern, text, flags)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(?i)a", "a group may begin with"),
        ("(?P<x>a)", "a group may begin with"),
        ("(?#x)a", "a group may begin with"),
        ("a*+", r"nothing to repeat at *+"),
        ("a{2,}+", r"nothing to repeat at {2,}+"),
        ("a**", "multiple repeat"),
        ("(", "missing )"),
        ("b{99999999999}", "the repetition number is too large"),
    ],
)
def test_pattern_of_another_language_is_refused(pattern: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        JavaScriptPattern(pattern, ignore_case=False, by_line=False)
