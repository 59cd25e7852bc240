"""JSON files: the written form, and refused values."""

from typing import Any

import pytest

from uwf_git.store.objects.commit import decode_json, encode_json


def test_json_is_read_and_written_for_people() -> None:
    assert decode_json(b'{"a": [1, 2.5, null, true, "\\u00e9"]}') == {
        "a": [1, 2.5, None, True, "é"]
    }
    assert encode_json({"a": "é"}) == '{\n  "a": "é"\n}\n'.encode()


def test_blanks_alone_make_no_blob_too_large_to_be_shared() -> None:
    deep: Any = [0] * 40_000
    for _ in range(480):
        deep = [deep]

    written = encode_json(deep)
    assert len(written) < 100_000
    assert decode_json(written) == deep


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"])
def test_what_could_not_be_read_back_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the words are Python's
        encode_json({"a": value})


@pytest.mark.parametrize("content", [b"\xff", b"NaN", b"[Infinity]", b"{", b"[" * 100_000])
def test_what_is_no_json_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the words are Python's
        decode_json(content)


@pytest.mark.parametrize("content", [b'{"a": 1, "a": 1}', b'[{"b": {"a": 1, "c": 2, "a": 3}}]'])
def test_a_key_that_is_there_twice_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="the key 'a' is there twice"):
        decode_json(content)
