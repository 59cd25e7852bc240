from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.agentkit.extraction.adapter import (
    AdapterAnswer,
    AskFailed,
    build_usage,
    classify_status,
    find,
    parse_last,
    parse_lines,
    read_last,
)


def test_failure_tells_its_kind_and_what_had_been_said() -> None:
    failure = AskFailed(
        "auth", "log in first", hint="claude login", partial=AdapterAnswer(text="so far")
    )

    assert (failure.kind, failure.facts, failure.hint) == ("auth", {"kind": "auth"}, "claude login")
    assert failure.partial == AdapterAnswer(text="so far")


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, "auth"), (403, "auth"), (413, "too-long"), (429, "rate-limit"), (500, "model-error")],
)
def test_status_of_an_endpoint_has_a_kind(status: int, kind: str) -> None:
    assert classify_status(status) == kind


def test_code_of_a_failure_is_not_that_of_an_unanswered_question() -> None:
    assert AskFailed("crashed", "gone").code == "ask-failed"


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


def test_list_is_a_document_too() -> None:
    assert parse_last(b'note\n[\n  {"a": 1}\n]') == [{"a": 1}]


def test_object_within_is_not_taken_for_the_document() -> None:
    assert parse_last(b'x\n{"a":\n{"b": 1}\n}') == {"a": {"b": 1}}


def test_document_that_was_cut_takes_no_time() -> None:
    cut = b"[\n" + b'{"a": [\n' * 100_000

    assert parse_last(cut) is None


@pytest.mark.parametrize("output", [b"", b"Error", b"see {this}", b'"text"', b"7", b"[" * 100_000])
def test_where_there_is_none_there_is_none(output: bytes) -> None:
    assert parse_last(output) is None


@given(st.binary())
def test_any_bytes_will_do(output: bytes) -> None:
    assert isinstance(parse_lines(output), list)
    parse_last(output)


RECORD = {"usage": {"n": 3, "x": 0.5, "yes": True}, "text": "t", "list": [1]}


def test_only_what_has_the_kind_is_found() -> None:
    for kind, path, value in [
        (str, ["text"], "t"),
        (int, ["usage", "n"], 3),
        (float, ["usage", "n"], 3.0),
        (float, ["usage", "x"], 0.5),
        (bool, ["usage", "yes"], True),
        (list, ["list"], [1]),
        (dict, ["usage"], RECORD["usage"]),
        (int, ["usage", "x"], None),
        (int, ["usage", "yes"], None),
        (float, ["usage", "yes"], None),
        (str, ["usage", "n"], None),
        (str, ["nothing"], None),
        (str, ["text", "deeper"], None),
        (str, ["list", "0"], None),
    ]:
        assert find(RECORD, kind, *path) == value


def test_unreported_numbers_are_left_out() -> None:
    assert build_usage(inputTokens=-3, outputTokens=2) == {"outputTokens": 2}
    assert build_usage(inputTokens=3, outputTokens=None, costUsd=0) == {
        "inputTokens": 3,
        "costUsd": 0,
    }


def test_file_that_was_not_left_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "usage.json").write_bytes(b'warning: x\n{"a": 1}\n')

    assert read_last(f"{tmp_path}/usage.json") == {"a": 1}
    assert read_last(f"{tmp_path}/other.json") is None
    assert read_last(str(tmp_path)) is None
