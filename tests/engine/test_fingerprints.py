import base64
import json
import random
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.fingerprints import (
    find_texts,
    format_fingerprints,
    parse_fingerprints,
    take_fingerprints,
)

KEY = "sk-ant/0123+456789é"
SALT = b"0123456789abcdef"
PRINTS = take_fingerprints([KEY, "c0rrect-h0rse"], SALT)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (KEY, KEY),
        (f"x {KEY} y", KEY),
        ("", None),
        ("short", None),
        (KEY[:-1], None),
        (KEY[1:], None),
        (f"?k={quote(KEY, safe='')}&", quote(KEY, safe="")),
        (json.dumps(KEY), json.dumps(KEY)[1:-1]),
        (base64.b64encode(f"me:{KEY}".encode()).decode(), None),
        (f"{KEY[:7]}\n    {KEY[7:]}", KEY),
    ],
)
def test_text_is_found_in_each_spelling(text: str, found: str | None) -> None:
    texts = find_texts(text.encode(), PRINTS)

    if found is not None:
        assert texts == (found,)
    elif "=" in text or len(text) > len(KEY):
        # In base64, what encodes nothing but the secret.
        assert texts
        assert all(each in text for each in texts)
    else:
        assert texts == ()


def test_several_are_found_also_if_they_overlap() -> None:
    prints = take_fingerprints(["abcdefgh", "ghijklmnop"], SALT)

    assert find_texts(b"<abcdefghijklmnop>", prints) == ("abcdefgh", "ghijklmnop")


def test_nothing_of_a_secret_is_in_its_fingerprints() -> None:
    document = format_fingerprints(PRINTS)

    pieces = {KEY[at : at + 4] for at in range(len(KEY) - 3)}
    assert not any(piece in document for piece in pieces)
    assert parse_fingerprints(document) == PRINTS


def test_salt_makes_other_fingerprints_of_the_same_secrets() -> None:
    other = take_fingerprints([KEY, "c0rrect-h0rse"], b"fedcba9876543210")

    assert {each.digest for each in other.prints}.isdisjoint(each.digest for each in PRINTS.prints)
    assert find_texts(KEY.encode(), other) == (KEY,)


def test_secrets_that_are_known_are_not_looked_for() -> None:
    rest = PRINTS.without([KEY])

    assert find_texts(f"{KEY} c0rrect-h0rse".encode(), rest) == ("c0rrect-h0rse",)
    assert find_texts(KEY.encode(), PRINTS.without([KEY, "c0rrect-h0rse"])) == ()


@pytest.mark.parametrize(
    "document",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"salt": "", "prints": [[1]]}',
        '{"salt": "", "prints": [[256, 8, ""]]}',
    ],
)
def test_other_documents_are_refused(document: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        parse_fingerprints(document)


@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(min_size=8, max_size=12))
def test_bytes_are_found_between_any_others(before: bytes, after: bytes, secret: bytes) -> None:
    text = secret.decode(errors="surrogateescape")
    prints = take_fingerprints([text], SALT)

    assert text in find_texts(before + secret + after, prints)


def test_long_output_is_read_in_seconds() -> None:
    data = random.Random(1).randbytes(4_000_000) + KEY.encode()
    begun = time.process_time()

    assert find_texts(data, PRINTS) == (KEY,)

    # A hash of each window of each length would take ten times as long.
    assert time.process_time() - begun < 10
