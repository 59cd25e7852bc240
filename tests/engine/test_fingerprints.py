import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.engine.masking import (
    find_secrets_in,
    format_fingerprints,
    parse_fingerprints,
    take_fingerprints,
)

KEY = "sk-ant/0123+456789é"
SALT = b"0123456789abcdef"
PRINTS = take_fingerprints([KEY, "c0rrect-h0rse"], SALT)


@pytest.mark.parametrize("text", ["", "short", KEY[:-1], KEY[1:], "\\", "\\u12", "%", "%zz", "\\q"])
def test_other_texts_have_none(text: str) -> None:
    assert find_secrets_in(text.encode(), PRINTS) == ()


def test_secret_has_one_fingerprint_whatever_its_spellings() -> None:
    assert len(PRINTS.prints) == 3  # the é may be one byte


def test_nothing_of_a_secret_is_in_its_fingerprints() -> None:
    document = format_fingerprints(PRINTS)

    pieces = {KEY[at : at + 4] for at in range(len(KEY) - 3)}
    assert not any(piece in document for piece in pieces)
    assert parse_fingerprints(document) == PRINTS


def test_secrets_that_are_known_are_not_looked_for() -> None:
    rest = PRINTS.without([KEY])

    assert find_secrets_in(f"{KEY} c0rrect-h0rse".encode(), rest) == ("c0rrect-h0rse",)
    assert find_secrets_in(KEY.encode(), PRINTS.without([KEY, "c0rrect-h0rse"])) == ()


@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(min_size=8, max_size=12))
def test_bytes_are_found_between_any_others(before: bytes, after: bytes, secret: bytes) -> None:
    text = secret.decode(errors="surrogateescape")
    prints = take_fingerprints([text], SALT)

    assert text in find_secrets_in(before + secret + after, prints)
