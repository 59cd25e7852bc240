import json
import posixpath
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from uwf_git.model.yaml_include import (
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
    resolve_include,
)
from uwf_git.model.yaml_reader import parse_yaml

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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no file"),
        ("/etc/passwd", "never absolute"),
        ("~/x", "never absolute"),
        ("C:/x", "never absolute"),
        ("C:\\x", "never absolute"),
        ("a\\b", "use / between"),
        ("../x", "outside the folder"),
        ("a/../../x", "outside the folder"),
        ("..", "outside the folder"),
        (".", "is a folder"),
        ("a/", "is a folder"),
        ("a\nb", "printable"),
        ("a\0b", "printable"),
        ("\u200c.git/config", "printable"),
        ("x" * 501, "500"),
        ("x" * 256, "too long"),
        (".git/config", ".git"),
        ("a/.GIT/x", ".GIT"),
        ("a/.gitmodules", ".gitmodules"),
        ("GIT~1/x", "GIT~1"),
        ("workflow.yaml", "rename it"),
        ("Head.json", "rename it"),
        ("nodes/a.md", "rename it"),
    ],
)
def test_invalid_path_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(CannotInclude, match=said) as caught:
        resolve_include(text, inside="")

    assert caught.value.exit_status == 1


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
