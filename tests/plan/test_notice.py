import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.plan.notice import (
    MOST_BYTES,
    BadNotice,
    Notice,
    NoticeScanner,
    TurnAtWork,
    counts_for,
    parse_notice,
)

STOP = {"type": "stop", "phase": "planning", "timestamp": "2026-01-02T03:04:05Z"}
TEXTS = st.text(max_size=8) | st.sampled_from(['"', "\\", "}{", "]", '\\"'])
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=10,
)


def scan(*pieces: bytes) -> bytes | None:
    scanner = NoticeScanner()
    return next((found for each in pieces if (found := scanner.add(each)) is not None), None)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), st.data())
def test_object_is_whole_at_its_last_bracket_however_it_comes(
    value: dict[str, Any], draws: st.DataObject
) -> None:
    is_ascii, has_mark = draws.draw(st.booleans()), draws.draw(st.booleans())
    whole = json.dumps(value, ensure_ascii=is_ascii).encode()
    sent = (b"\xef\xbb\xbf" if has_mark else b"") + whole
    cuts = sorted(draws.draw(st.lists(st.integers(0, len(sent)), max_size=5)))
    pieces = [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True)]

    assert scan(*pieces) == whole
    assert scan(*pieces[:-1], pieces[-1] + b'\n{"more"}') == whole
    assert scan(sent[:-1]) is None


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (b"GET / HTTP/1.1\r\n", "does not begin with {"),
        (b" {}", "does not begin with {"),
        (b"\xef\xbb{}", "does not begin with {"),
        (b"\xef\xbb\xbf\xef\xbb\xbf{}", "does not begin with {"),
        (b"[]", "does not begin with {"),
        (b'{"a":' * 21, "more than 20 levels"),
        (b'{"a":' + b"[" * 20, "more than 20 levels"),
        (b'{"a":"' + b"x" * MOST_BYTES, "more than 65,536 bytes"),
    ],
)
def test_scanner_refuses_at_once(sent: bytes, problem: str) -> None:
    with pytest.raises(BadNotice, match=problem):
        scan(sent)
    with pytest.raises(BadNotice, match=problem):
        scan(*(sent[place : place + 1] for place in range(len(sent))))


def test_largest_notice() -> None:
    filling = MOST_BYTES - len(b'{"a":""}')
    deepest = b'{"a":' + b"[" * 19 + b"]" * 19 + b"}"

    assert scan(b'{"a":"' + b"x" * filling + b'"}') is not None
    assert scan(deepest) == deepest
    with pytest.raises(BadNotice):
        scan(b'{"a":"' + b"x" * (filling + 1) + b'"}')


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (b'{"type":"stop"}', "phase is not planning or executing"),
        (b'{"type":"stop","phase":"idle"}', "phase is not planning or executing"),
        (b'{"type":"stop","phase":["planning"]}', "phase is not planning or executing"),
        (b'{"type":"start","phase":"planning"}', 'type is not "stop"'),
        (b"{}", 'type is not "stop"'),
        (b'{"type":"stop","phase":"planning","thread":1}', "thread is not a text: 1"),
        (b'{"type":"stop","phase":"planning","head":[]}', r"head is not a text: \[\]"),
        (b'{"type":"stop" "phase"}', "not JSON"),
        (b'{"type":"stop",]', "not JSON"),
        (b'{"type":"stop","type":"stop"}', "there twice"),
        (b'{"a":NaN}', "not JSON"),
        (b'{"a":"\\ud800"}', "not JSON"),
        (b'{"a":' + b"9" * 5000 + b"}", "too many digits"),
        (b'{"a":"\xff"}', r"not UTF-8 \(byte 6\)"),
    ],
)
def test_what_is_no_notice(sent: bytes, problem: str) -> None:
    assert scan(sent) == sent
    with pytest.raises(BadNotice, match=problem):
        parse_notice(sent)


def test_notice_keeps_what_it_does_not_know() -> None:
    document = STOP | {"thread": "T", "head": "", "wer": "我"}

    notice = parse_notice(json.dumps(document).encode())

    assert notice == Notice("planning", "T", None, document)


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ({}, True),
        ({"thread": "T", "head": "H"}, True),
        ({"thread": "T"}, True),
        ({"thread": "T", "head": "G"}, False),
        ({"thread": "S", "head": "H"}, False),
        ({"phase": "executing"}, False),
        ({"phase": "executing", "thread": "T", "head": "H"}, False),
    ],
)
def test_notice_counts_for_its_turn_only(more: dict[str, str], *, counts: bool) -> None:
    notice = parse_notice(json.dumps(STOP | more).encode())

    assert counts_for(notice, TurnAtWork("T", "H", "planning")) == counts
