import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.names import ALPHABET, encode_u64, fold


def decode(text: str) -> int:
    number = 0
    for symbol in text:
        number = number * 32 + ALPHABET.index(symbol)
    return number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0000000000000"),
        (1, "0000000000001"),
        (31, "000000000000Z"),
        (32, "0000000000010"),
        (2**64 - 1, "FZZZZZZZZZZZZ"),
    ],
)
def test_numbers_are_written_most_significant_first(number: int, text: str) -> None:
    assert encode_u64(number) == text


@given(st.integers(0, 2**64 - 1))
def test_a_number_can_be_read_back(number: int) -> None:
    text = encode_u64(number)
    assert decode(text) == number
    assert len(text) == 13
    assert text[0] <= "F"


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_texts_sort_as_their_numbers(one: int, other: int) -> None:
    assert (encode_u64(one) < encode_u64(other)) is (one < other)


def test_lower_case_and_lookalikes_are_forgiven() -> None:
    assert fold("ilo ILO abcdefghjkmnpqrstvwxyz") == "110 110 ABCDEFGHJKMNPQRSTVWXYZ"


@given(st.text(ALPHABET))
def test_canonical_value_stays(text: str) -> None:
    assert fold(text) == text
    assert fold(text.lower()) == text


@given(st.text())
def test_foreign_letters_are_left_for_the_caller_to_refuse(text: str) -> None:
    folded = fold(text)
    assert len(folded) == len(text)
    assert [a for a in folded if not a.isascii()] == [a for a in text if not a.isascii()]
