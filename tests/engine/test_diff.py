import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses

from uwf_git.commands.inspect.read import Found, compile_pattern, find_in
from uwf_git.engine.diff import Pair, ValueChange, align, diff_texts, diff_values
from uwf_git.engine.masking import MASK
from uwf_git.model.node import render_path

WORDS = st.lists(st.sampled_from("abc"), max_size=12)


def longest(one: list[str], other: list[str]) -> int:
    """Count the longest common subsequence the slow way."""
    row = [0] * (len(other) + 1)
    for each in one:
        before = row
        row = [0]
        for at, its in enumerate(other):
            row.append(before[at] + 1 if each == its else max(before[at + 1], row[at]))
    return row[-1]


@given(WORDS, WORDS)
def test_every_position_is_named_once_in_order_and_pairs_are_equal(
    one: list[str], other: list[str]
) -> None:
    pairs = align(one, other)

    assert [pair.one for pair in pairs if pair.one is not None] == list(range(len(one)))
    assert [pair.other for pair in pairs if pair.other is not None] == list(range(len(other)))
    for pair in pairs:
        assert pair.one is None or pair.other is None or one[pair.one] == other[pair.other]
        assert pair != Pair(None, None)


@given(WORDS, WORDS)
def test_as_many_as_can_be_are_in_pairs(one: list[str], other: list[str]) -> None:
    assert len([pair for pair in align(one, other) if None not in pair]) == longest(one, other)


def test_too_many_differences_leave_only_the_ends_in_pairs() -> None:
    one = ["start", *map(str, range(2, 3000, 2)), "end"]
    other = ["start", *map(str, range(3, 3000, 3)), "end"]

    paired = [pair for pair in align(one, other) if None not in pair]

    assert paired == [Pair(0, 0), Pair(len(one) - 1, len(other) - 1)]


def test_long_sequences_that_repeat_themselves_take_no_time() -> None:
    roles = ["writer", "checker"] * 20_000

    assert len(align(roles, roles[: 3 * len(roles) // 4])) == len(roles)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from("xyz"), inner),
    max_leaves=12,
)


def spelled(value: Any) -> str:
    """Distinguish true from 1, which Python does not."""
    return json.dumps(value, sort_keys=True)


def applied(value: Any, changes: list[ValueChange]) -> Any:
    """Remove what was removed, then set what was added or changed."""
    holder = {"": copy.deepcopy(value)}
    for change in reversed([each for each in changes if each.kind == "removed"]):
        parent, key = place(holder, change)
        assert spelled(parent[key]) == spelled(change.before)
        del parent[key]
    for change in changes:
        if change.kind == "added":
            parent, key = place(holder, change)
            if isinstance(parent, list):
                parent.insert(key, change.after)
            else:
                assert key not in parent
                parent[key] = change.after
    for change in changes:
        if change.kind == "changed":
            parent, key = place(holder, change)
            assert spelled(parent[key]) == spelled(change.before)
            parent[key] = change.after
    return holder[""]


def place(holder: Any, change: ValueChange) -> tuple[Any, Any]:
    *way, key = ("", *change.path)
    for part in way:
        holder = holder[part]
    return holder, key


@given(VALUES, VALUES)
def test_changes_make_the_other_value_of_the_one(one: Any, other: Any) -> None:
    assert spelled(applied(one, diff_values(one, other))) == spelled(other)


@given(VALUES, VALUES)
def test_there_are_changes_exactly_where_values_differ(one: Any, other: Any) -> None:
    assert (diff_values(one, other) == []) is (spelled(one) == spelled(other))


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ((), ""),
        (("a", 0, "b"), "a[0].b"),
        ((2, "a"), "[2].a"),
        (("a.b", 'c"', "", " "), '["a.b"]["c\\""][""][" "]'),
    ],
)
def test_path_is_written_without_doubt(path: tuple[str | int, ...], told: str) -> None:
    assert render_path(path) == told


TEXTS = st.lists(st.sampled_from(["a", "b", "\n", "\r", "\x0b", "\u2028", "-", "é", "\\"])).map(
    "".join
)


def patched(text: str, diff: str) -> str:
    """Apply a unified diff by its line numbers alone."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1:] = [lines[-1][:-1]] if lines[-1] != "\n" else []
    made, at = "", 0
    for hunk in diff.split("\n@@ -")[1:]:
        header, *body = hunk.removesuffix("\n").split("\n")
        start, _comma, count = header.partition(" ")[0].partition(",")
        begin = int(start) - (count != "0")
        made += "".join(lines[at:begin])
        at = begin
        for number, line in enumerate(body):
            ends = not (number + 1 < len(body) and body[number + 1].startswith("\\"))
            told = line[1:] + ("\n" if ends else "")
            if line.startswith((" ", "-")):
                assert lines[at] == told
                at += 1
            if line.startswith((" ", "+")):
                made += told
    return made + "".join(lines[at:])


@given(TEXTS, TEXTS)
def test_diff_makes_the_other_text_of_the_one(one: str, other: str) -> None:
    diff = diff_texts(one, other)
    assert patched(one, diff) == other
    assert (diff == "") == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("", "new\n"),
        ("old", ""),
        ("a\nb", "a\nb\n"),
        ("a\n" * 9, "a\n" * 8 + "b"),
        ("\r\n", "\n"),
        ("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "0\n2\n3\n4\n5\n6\n7\n8\n0\n"),
    ],
)
def test_git_can_apply_it(one: str, other: str, tmp_path: Path, git: Callable[..., str]) -> None:
    file = tmp_path / "text"
    file.write_text(one, newline="")
    diff = diff_texts(one, other).replace("--- a\n+++ b\n", "--- a/text\n+++ b/text\n", 1)

    git("apply", "--unsafe-paths", "-", cwd=tmp_path, stdin=diff)

    assert file.read_bytes().decode() == other


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

    assert found("needle", text, secrets=(secret,)) == Found(f"key {MASK} and a needle, {MASK}", 1)
    assert found("Abc", text, secrets=(secret,)) == Found(MASK, 8)
