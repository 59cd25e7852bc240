import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.cli.output.screen import (
    Cell,
    Column,
    Screen,
    display_width,
    render_columns,
    render_table,
    render_text,
    shorten,
)

COLUMNS = (
    Column("id", "ID"),
    Column("empty", "EMPTY", 1),
    Column("task", "TASK", 2, least=8),
    Column("path", "PATH", 3, least=10),
)
ROW = {"id": "01J7K9M2XN", "task": "fix the login", "path": "/a/long/path/to/it", "empty": None}


def test_columns_are_left_out_before_words_are_cut() -> None:
    def shown(width: int | None, *, wide: bool = False) -> list[str]:
        return render_columns([ROW], COLUMNS, Screen(width), wide=wide)

    assert shown(None) == [
        "ID          EMPTY  TASK           PATH",
        "01J7K9M2XN  -      fix the login  /a/long/path/to/it",
    ]
    assert shown(45) == [
        "ID          TASK           PATH",
        "01J7K9M2XN  fix the login  /a/long/path/to/it",
    ]
    assert shown(36) == ["ID          TASK         PATH", "01J7K9M2XN  fix the lo…  /a/long/pa…"]
    assert shown(25) == ["ID          TASK", "01J7K9M2XN  fix the login"]
    assert shown(20) == ["ID          TASK", "01J7K9M2XN  fix the…"]
    assert shown(12) == ["ID", "01J7K9M2XN"]
    assert shown(5) == ["ID", "01J7K9M2XN"]
    assert shown(20, wide=True) == shown(None)


def test_stream_that_is_not_utf8_gets_ascii_of_the_same_width() -> None:
    screen = Screen(24, is_utf8=False)
    rows: list[dict[str, Cell]] = [{"id": screen.name_status("killed"), "task": "日本 and more"}]

    lines = render_columns(rows, COLUMNS[:1] + COLUMNS[2:3], screen)

    assert lines == ["ID        TASK", "x killed  \\u65e5\\u672c ~"]
    assert all(line.isascii() for line in lines)


CELLS = st.none() | st.text(max_size=60) | st.sampled_from(["日本語" * 9, "01J7K9M2XN"])


ROWS = st.lists(st.fixed_dictionaries(dict.fromkeys(("empty", "task", "path"), CELLS)), min_size=1)


@given(rows=ROWS, width=st.integers(24, 120))
def test_any_table_fits_and_never_cuts_an_id(rows: list[dict[str, str | None]], width: int) -> None:
    cells = [{"id": f"01J7K9M2X{number % 10}", **row} for number, row in enumerate(rows)]

    lines = render_columns(cells, COLUMNS, Screen(width))

    assert max(map(display_width, lines)) <= width
    assert [line.split()[0] for line in lines[1:]] == [row["id"] for row in cells]


KEYS = st.sampled_from(["id", "startTime", "a\nb", "日本"])
SCALARS = st.none() | st.booleans() | st.integers() | st.text(st.characters())
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner))


def test_document_for_people() -> None:
    cases: list[tuple[Any, str]] = [
        (None, ""),
        ([], ""),
        ({}, ""),
        (True, "yes\n"),
        (False, "no\n"),
        (12, "12\n"),
        (1.5, "1.5\n"),
        ("two\nlines\n", "two\nlines\n"),
        ("", "\n"),
        (["a", None, True, []], "a\n-\nyes\n-\n"),
        ([["a", "b"], "c", ["d"]], "- a\n  b\n- c\n- d\n"),
        ([{"a": 1}, "c"], "- a: 1\n- c\n"),
    ]
    for document, text in cases:
        assert render_text(document) == text


def test_too_deep_value_is_one_line_of_json() -> None:
    deep: Any = "x"
    for _ in range(400):
        deep = {"k": deep}

    text = render_text(deep)

    assert text.count("\n") == 13
    assert '{"k":{"k":' in text


@given(VALUES, st.none() | st.integers(1, 100))
def test_anything_renders_without_controls_and_without_words_of_python(
    document: Any, width: int | None
) -> None:
    text = render_text(document, width=width)

    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", text)
    assert text == "" or text.endswith("\n")


@given(st.lists(st.dictionaries(KEYS, st.none() | st.booleans(), min_size=1), min_size=1))
def test_nothing_and_truth_never_show_as_python_spells_them(rows: list[dict[str, Any]]) -> None:
    assert not re.search("None|True|False|undefined|null|true|false", render_text(rows))


@given(st.lists(st.dictionaries(KEYS, SCALARS, min_size=1), min_size=1), st.integers(1, 99))
def test_every_row_is_one_line(rows: list[dict[str, Any]], width: int) -> None:
    assert len(render_table(rows, width=width)) == len(rows) + 1


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
    program = "import sys; from uwf_git.cli.output.screen import shorten; shorten('a' * 9, 5)"
    check = "assert 'wcwidth' not in sys.modules"
    subprocess.run([sys.executable, "-c", f"{program}; {check}"], check=True)


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])), st.integers(1, 20))
def test_short_text_fits_and_begins_as_the_long_one(text: str, width: int) -> None:
    short = shorten(text, width)

    assert display_width(short) <= width
    assert short == text or text.startswith(short.removesuffix("…"))
