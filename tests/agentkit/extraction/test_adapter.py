import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agentkit.records import build_usage, parse_last, parse_lines, read_usage
from uwf_git.agentkit.turn import classify_status


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "auth"), (403, "auth"), (413, "too-long"), (429, "rate-limit"), (500, "model-error")],
)
def test_status_of_an_endpoint_has_a_kind(status: int, kind: str) -> None:
    assert classify_status(status) == kind


def test_lines_that_are_no_objects_are_left_out() -> None:
    output = b'\xef\xbb\xbf{"a": 1}\r\nwarning: old node\n[1]\n{"b": "\xff"}\n\n{"c": 3'

    assert parse_lines(output) == [{"a": 1}, {"b": "\ufffd"}]


@pytest.mark.parametrize(
    "output",
    [
        b'{"a": 1}',
        b'\xef\xbb\xbf{"a": 1}\n',
        b'{\n  "a": 1\n}\n',
        b'warning: x\n{"a": 1}\n',
        b'Error: at {place}\n    at f (x.js:1)\n{\n  "a": 1\n}\n',
        b'{"b": 2}\n{"a": 1}\n',
        b'{"a": 1}\nbye\n',
        b'{"a": 1}\n{not json\n',
    ],
)
def test_last_document_is_found(output: bytes) -> None:
    assert parse_last(output) == {"a": 1}


def test_document_that_was_cut_takes_no_time() -> None:
    cut = b"[\n" + b'{"a": [\n' * 100_000

    assert parse_last(cut) is None


@given(st.binary())
def test_any_bytes_will_do(output: bytes) -> None:
    assert isinstance(parse_lines(output), list)
    parse_last(output)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity", "1" + "0" * 400])
def test_number_that_no_node_holds_is_not_reported(number: str) -> None:
    line = f'{{"cost": {number}, "tokens": {number}, "turns": 2}}'.encode()

    for record in (*parse_lines(line), parse_last(line), json.loads(line)):
        read = read_usage(record, costUsd="cost", inputTokens="tokens", turns="turns")
        assert read == {"turns": 2}


def test_unreported_numbers_are_left_out() -> None:
    assert build_usage(inputTokens=-3, outputTokens=2) == {"outputTokens": 2}
    assert build_usage(inputTokens=3, outputTokens=None, costUsd=0) == {
        "inputTokens": 3,
        "costUsd": 0,
    }
