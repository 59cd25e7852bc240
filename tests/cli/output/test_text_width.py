import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.cli.output.table import display_width, shorten


def test_width_is_in_columns() -> None:
    for text, width in [
        ("", 0),
        ("abc", 3),
        ("é", 1),
        ("e\u0301", 1),
        ("日本", 4),
        ("ｱ", 1),
        ("\uff21", 2),
        ("👍", 2),
        ("👍🏽", 2),
        ("👨‍👩‍👧", 2),
        ("👨‍💻", 2),
        ("❤️", 2),
        ("🇩🇪", 2),
        ("n\u0303o", 2),
    ]:
        assert display_width(text) == width


@pytest.mark.parametrize(
    ("text", "width", "short"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("日本語", 6, "日本語"),
        ("日本語", 5, "日本…"),
        ("日本語", 4, "日…"),
        ("abc", 1, "…"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
        ("👨‍💻👨‍💻", 3, "👨‍💻…"),
        ("a👨‍💻b", 3, "a…"),
    ],
)
def test_text_is_shortened_between_characters(text: str, width: int, short: str) -> None:
    assert shorten(text, width) == short


def test_width_of_ascii_imports_no_tables() -> None:
    program = "import sys; from uwf_git.cli.output.table import shorten; shorten('a' * 9, 5)"
    check = "assert 'wcwidth' not in sys.modules"
    subprocess.run([sys.executable, "-c", f"{program}; {check}"], check=True)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])), st.integers(1, 20))
def test_short_text_fits_and_begins_as_the_long_one(text: str, width: int) -> None:
    short = shorten(text, width)

    assert display_width(short) <= width
    assert short == text or text.startswith(short.removesuffix("…"))
