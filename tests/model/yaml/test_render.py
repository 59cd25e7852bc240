import json
import math
import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from model.telling import tell_cases

from uwf_git.model.yaml_reader import (
    MAX_ALL_BYTES,
    MAX_FILE_BYTES,
    MAX_FILES,
    RESERVED,
    BadIncludes,
    CannotInclude,
    IncludedNotJson,
    Includes,
    decode_text,
    json_as_yaml,
    parse_yaml,
    resolve_include,
)
from uwf_git.model.yaml_render import render_yaml, resolve_plain

CASES = Path(__file__).parent / "made_up" / "scalars_and_paths.json"


# Text as agents write it, and text with characters that have a meaning in YAML.
texts = st.one_of(
    st.text(),
    st.text(alphabet="ab \n\t:#-'\"|>.\\1e0xo~?\r&*[]{},%@`", max_size=15),
    st.sampled_from(["yes", "No", "on", "=", "<<", "12:30", "2024-01-01", "1_000", "0o7", "---"]),
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=20,
)


@given(values)
@example("\t0\n")
@example("  first line is indented\nsecond\n")
@example("\n\nblank lines first")
@example("blank lines last\n\n\n")
@example("blanks at the end  \n  \nof lines")
@example({"x" * 2000: {"y" * 2000: ["z"]}})
@example([[[["a\nb"]], {"c": "d\ne"}]])
def test_written_value_is_read_back(value: Any) -> None:
    # repr distinguishes 1 from True and 1.0, and shows the order of keys.
    assert repr(parse_yaml(render_yaml(value)).value) == repr(value)


@given(listed=st.lists(scalars), ascii_only=st.booleans())
@example(listed=[1e-05, 1e22], ascii_only=False)
@example(listed=["Grüße", "漢\n😀\n", {"ß" * 400: "\\xfc"}], ascii_only=True)
def test_readers_of_yaml_1_1_see_the_same(*, listed: list[Any], ascii_only: bool) -> None:
    # U+0085 and the like are written as escapes, which every reader keeps.
    text = render_yaml(listed, ascii_only=ascii_only)
    assert text.isascii() or not ascii_only
    assert repr(yaml.safe_load(text)) == repr(listed)


@pytest.mark.parametrize(("length", "first"), [(500, "x"), (501, "?")])
def test_key_of_more_than_500_characters_has_a_line_of_its_own(length: int, first: str) -> None:
    assert render_yaml({"x" * length: 1})[0] == first


def test_control_characters_reach_no_terminal() -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", render_yaml("\x1b[31mred\x07\n\x9b"))


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_invalid_json_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        render_yaml([number])


def test_marks_of_direction_are_escaped_and_read_back() -> None:
    for mark in "\u061c\u200e\u200f\u202a\u202e\u2066\u2069":
        value = {f"a{mark}": [f"{mark}b", f"two\nlines{mark}\n"]}
        text = render_yaml(value)
        assert mark not in text
        assert parse_yaml(text).value == value


@pytest.mark.parametrize("text", [".inf", "+.INF", "-.Inf", "1e999", "9" * 400, "0x" + "f" * 300])
def test_number_beyond_floats_comes_back_infinite(text: str) -> None:
    assert math.isinf(float(resolve_plain(text) or 0))


def test_number_of_five_thousand_digits_does_not_raise() -> None:
    assert resolve_plain("0" * 5000 + "12") == 12
    assert resolve_plain("-" + "9" * 5000) == -math.inf


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="\x7f\x85\u2028\u2029"), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text('abcé\\"/ \t\n😀', max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


def included(content: bytes, name: str) -> Any:
    def read(_path: str) -> bytes:
        return content

    return parse_yaml(f"x: !include {name}", includes=Includes(read)).value["x"]


@given(
    value=VALUES,
    indent=st.sampled_from([None, 2, "\t"]),
    separators=st.sampled_from([(",", ":"), (", ", ": ")]),
    ascii_only=st.booleans(),
)
def test_json_has_its_standard_meaning(
    value: Any,
    indent: int | str | None,
    separators: tuple[str, str],
    ascii_only: bool,  # noqa: FBT001 (hypothesis passes by name)
) -> None:
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=ascii_only)
    clean = not any(0x80 <= ord(char) < 0xA0 or 0xFFFE <= ord(char) <= 0xFFFF for char in text)
    if clean:
        assert repr(included(text.encode(), "x.json")) == repr(json.loads(text))


def test_scalars_contents_and_paths(golden: Callable[[str, str], None]) -> None:
    def tell_json(content: str) -> object:
        try:
            return json_as_yaml(content.encode("latin-1"))
        except IncludedNotJson as wrong:
            return [wrong.line, str(wrong)]

    answers = {
        "resolve_plain": resolve_plain,
        "x.JSON": lambda text: included(text.encode(), "x.JSON"),
        "json_as_yaml": tell_json,
        "decode_text": lambda content: decode_text(content.encode("latin-1")),
        "resolve_include": lambda text: resolve_include(text, inside=""),
    }
    golden("model/scalars_and_paths.txt", tell_cases(CASES, answers))


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (b"[1,\n2,]", 2, "not JSON"),
        (b"[" * 100_000, None, "nested too deeply"),
        (b"1" * 5000, None, "too many digits"),
    ],
    ids=["comma", "deep", "long"],
)
def test_invalid_json_is_reported_with_its_line(
    content: bytes, line: int | None, said: str
) -> None:
    with pytest.raises(IncludedNotJson, match=said) as caught:
        json_as_yaml(content)

    assert caught.value.line == line


def test_text_is_what_the_file_says_on_every_system() -> None:
    assert decode_text(b"\xef\xbb\xbfone\r\ntwo\rthree\n\n") == "one\ntwo\nthree\n\n"
    assert decode_text("ß \u2028 \t\f ü".encode()) == "ß \u2028 \t\f ü"
    assert decode_text(b"") == ""


def test_files_are_limited_in_size_in_number_and_together() -> None:
    with pytest.raises(CannotInclude, match="larger than 1 MiB"):
        Includes(lambda _path: b"x" * (MAX_FILE_BYTES + 1)).read("a")
    many = Includes(lambda _path: b"")
    for number in range(MAX_FILES):
        many.read(str(number))
    assert many.read("0") == b""
    with pytest.raises(CannotInclude, match="at most 100 files"):
        many.read("one more")
    large = Includes(lambda _path: b"x" * MAX_FILE_BYTES)
    for number in range(MAX_ALL_BYTES // MAX_FILE_BYTES):
        large.read(str(number))
    with pytest.raises(CannotInclude, match="all included files are larger than 8 MiB"):
        large.read("one more")


def test_files_go_only_so_deep() -> None:
    files = {f"{number}.yaml": b"!include %d.yaml" % (number + 1) for number in range(40)}

    with pytest.raises(BadIncludes, match=r"9.yaml:1: .* more than 10 levels deep"):
        parse_yaml("!include 0.yaml", includes=Includes(files.__getitem__))


@given(
    st.lists(st.sampled_from(["..", ".", "a", "b", "", ".git", "nodes", "~", "é"]), max_size=8),
    st.sampled_from(["", "a.yaml", "a/b.yaml", "a/b/c.yaml"]),
)
@example(["a", "..", "..", "x"], "a/b.yaml")
def test_whatever_is_written_the_path_stays_below_the_folder(parts: list[str], inside: str) -> None:
    try:
        path = resolve_include("/".join(parts), inside=inside)
    except CannotInclude:
        return
    assert path == posixpath.normpath(path)
    assert not path.startswith(("/", "../"))
    assert path.split("/")[0] not in {"..", ".", *RESERVED}
    assert resolve_include(f"./{path}", inside="") == path
