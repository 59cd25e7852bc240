import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.yaml.include import (
    MAX_ALL_BYTES,
    MAX_FILE_BYTES,
    MAX_FILES,
    BadIncludes,
    CannotInclude,
    IncludedNotJson,
    Includes,
    decode_text,
    is_json,
    is_yaml,
    json_as_yaml,
)
from uwf_git.model.yaml.reader import parse_yaml

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


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"\\ud83d\\ude00"', "😀"),
        ('"\\\\ud83d\\\\ude00"', "\\ud83d\\ude00"),
        ('"\\\\\\ud83d\\ude00"', "\\😀"),
        ('"a\\/b"', "a/b"),
        ("\ufeff[1]", [1]),
        ('{"on": 1, "no": true}', {"on": 1, "no": True}),
    ],
)
def test_json_of_every_spelling_is_read(text: str, value: Any) -> None:
    assert included(text.encode(), "x.JSON") == value


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        (b"{\n 'a': 1}", 2, "not JSON"),
        (b"a: 1", 1, "not JSON"),
        (b"[1,\n2,]", 2, "not JSON"),
        (b"", 1, "not JSON"),
        (b"[NaN]", None, "NaN is a number that JSON does not have"),
        (b"\n\xff", 2, "not UTF-8"),
        (b"[" * 100_000, None, "nested too deeply"),
        (b"1" * 5000, None, "too many digits"),
    ],
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


@pytest.mark.parametrize("content", [b"\xff", b"a\0b", b"\x1b[31m", b"\x7fELF"])
def test_invalid_text_is_refused(content: bytes) -> None:
    with pytest.raises(CannotInclude, match=r"not .*text"):
        decode_text(content)


def test_the_end_of_the_name_says_what_a_file_is() -> None:
    assert is_yaml("a/b.yaml")
    assert is_yaml("B.YML")
    assert is_json("a.Json")
    assert not is_yaml("a.yaml.md")
    assert not is_json("json")


def test_each_file_is_read_once() -> None:
    asked: list[str] = []

    def read(path: str) -> bytes:
        asked.append(path)
        return b"text"

    includes = Includes(read)
    document = parse_yaml("[!include a.md, !include ./a.md, !include b/../a.md]", includes=includes)

    assert document.value == ["text"] * 3
    assert (asked, includes.files) == (["a.md"], {"a.md": b"text"})


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


def test_file_that_leads_back_to_itself_is_a_cycle_that_is_shown() -> None:
    includes = Includes(lambda _path: b"", name="main.yaml")

    assert includes.resolve("b.yaml", ("main.yaml", "a.yaml")) == "b.yaml"
    with pytest.raises(CannotInclude, match=r"main.yaml → a.yaml → main.yaml"):
        includes.resolve("main.yaml", ("main.yaml", "a.yaml"))
    with pytest.raises(CannotInclude, match=r"itself: a.yaml → b.yaml → a.yaml"):
        includes.resolve("a.yaml", ("main.yaml", "a.yaml", "b.yaml"))


def test_files_go_only_so_deep() -> None:
    files = {f"{number}.yaml": b"!include %d.yaml" % (number + 1) for number in range(40)}

    with pytest.raises(BadIncludes, match=r"9.yaml:1: .* more than 10 levels deep"):
        parse_yaml("!include 0.yaml", includes=Includes(files.__getitem__))
