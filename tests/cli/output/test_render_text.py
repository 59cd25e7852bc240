import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from uwf_git.cli.output.table import display_width, render_table, render_text

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


def test_object_is_lines_and_nested_ones_are_indented() -> None:
    document = {
        "thread": "01J7",
        "ended": None,
        "active": True,
        "empty": {},
        "name": "",
        "role": {"name": "planner", "tags": ["a", "b"]},
        "content": "first\n\n  second\n",
        "steps": [{"head": "8FWK", "depth": 1}, {"head": "4KNM2", "depth": None}],
    }

    assert render_text(document).splitlines() == [
        "thread: 01J7",
        "ended: -",
        "active: yes",
        "empty: -",
        "name:",
        "role:",
        "  name: planner",
        "  tags:",
        "    a",
        "    b",
        "content:",
        "  first",
        "",
        "    second",
        "steps:",
        "  HEAD   DEPTH",
        "  8FWK   1",
        "  4KNM2  -",
    ]


def test_objects_are_an_aligned_table() -> None:
    rows = [
        {"id": "a", "startTime": 1, "title": "日本"},
        {"id": "long", "title": "é", "done": True},
        {"id": "c", "title": "x\ny\x1b", "done": [1, "two", None]},
        {"id": "d", "title": {"k": ["v"]}},
    ]

    assert render_text(rows).splitlines() == [
        "ID    START TIME  TITLE        DONE",
        "a     1           日本         -",
        "long  -           é            yes",
        "c     -           x\\ny\\x1b     1, two, -",
        'd     -           {"k":["v"]}  -',
    ]


def test_wide_columns_give_way_to_the_terminal_and_ids_do_not() -> None:
    rows = [{"id": "01J7K9M2XNPQR5VWBCDF8G3H4T", "prompt": "fix the login bug " * 9, "role": "x"}]

    lines = render_text(rows, width=60).splitlines()

    assert lines[1].startswith("01J7K9M2XNPQR5VWBCDF8G3H4T  fix the login")
    assert "…" in lines[1]
    assert max(map(display_width, lines)) <= 60
    assert "…" not in render_text(rows)


def test_table_leaves_columns_out_before_it_cuts_names_of_nodes() -> None:
    rows = [{"a": "8FWKR3TN5V1QA", "b": "4KNM2PXR3B1QW", "c": None}]

    assert render_text(rows, width=28).split() == ["A", "B", "8FWKR3TN5V1QA", "4KNM2PXR3B1QW"]
    assert render_text(rows, width=10).split() == ["A", "8FWKR3TN5V1QA"]


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
