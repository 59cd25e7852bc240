from collections.abc import Callable
from pathlib import Path

import pytest
from cli.ran import Ran
from refusing import refuses

from uwf_git.cli.app.parameters import Input
from uwf_git.cli.cas.nodes import TypedPayload, read_exact_text

Cas = Callable[..., Ran]


def written(tmp_path: Path, content: bytes) -> Input:
    path = tmp_path / "payload"
    path.write_bytes(content)
    return Input(str(path))


@pytest.mark.parametrize(
    "text", ["\ufeffwith a mark", "a\r\nb\rc", "", "no newline", "\0\x1b[2J", "e\u0301"]
)
def test_text_is_read_byte_for_byte(text: str, tmp_path: Path) -> None:
    source = written(tmp_path, text.encode())

    assert read_exact_text(source) == text
    assert TypedPayload("Text", source, as_text=True).read() == text


def test_text_that_is_not_utf8_is_refused_with_the_place(tmp_path: Path) -> None:
    with refuses("not-text", match=r"is not UTF-8 text \(byte 2\)"):
        read_exact_text(written(tmp_path, b"ab\xff"))


def test_json_is_read_unless_it_is_said_to_be_text(tmp_path: Path) -> None:
    source = written(tmp_path, b'{"a": [1, 2.5, null]}')

    assert TypedPayload("Text", source, as_text=False).read() == {"a": [1, 2.5, None]}
    assert TypedPayload("Text", source, as_text=True).read() == '{"a": [1, 2.5, null]}'


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b" \n",
        b"hello",
        b'{"a": 1, "a": 2}',
        b"NaN",
        b"1e999",
        b"[1] [2]",
        b"[" * 100_000,
        b"1" * 5000,
        b"{'a': 1}",
    ],
)
def test_invalid_json_is_refused(content: bytes, tmp_path: Path) -> None:
    with refuses("not-json"):
        TypedPayload("Text", written(tmp_path, content), as_text=False).read()


def test_file_that_is_missing_or_too_large_is_refused(tmp_path: Path) -> None:
    with refuses("input-unreadable"):
        TypedPayload("Text", Input(str(tmp_path / "gone")), as_text=False).read()
    with refuses("input-too-large"):
        TypedPayload("Text", written(tmp_path, b" " * 50_000_000), as_text=False).read()


@pytest.mark.parametrize("verb", ["put", "hash"])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "takes TYPE and FILE, not no words"),
        (["Text"], "takes TYPE and FILE, not 1 word"),
        (["Text", "a", "b"], "takes TYPE and FILE, not 3 words"),
        (["--self"], "takes FILE alone with --self, not no words"),
        (["--self", "Text", "a"], "takes FILE alone with --self, not 2 words"),
    ],
)
def test_wrong_number_of_words_is_refused_with_what_is_wanted(
    verb: str, words: list[str], told: str, cas: Cas
) -> None:
    ran = cas(verb, *words)

    assert (ran.status, ran.out) == (2, "")
    error, hint = ran.err.splitlines()
    assert error == f"error: json-cas {verb} {told}"
    assert hint.startswith("hint: FILE may be `-`, standard input;")


@pytest.mark.parametrize("verb", ["put", "hash"])
def test_empty_word_is_refused(verb: str, cas: Cas) -> None:
    assert cas(verb, "Text", "").status == 2
