import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.names import (
    ALPHABET,
    NotANodeHash,
    check_path_below,
    encode_u64,
    fold,
    is_node_hash,
    parse_node_prefix,
)
from uwf_git.model.thread import FORMAT


def decode(text: str) -> int:
    number = 0
    for symbol in text:
        number = number * 32 + ALPHABET.index(symbol)
    return number


@given(st.integers(0, 2**64 - 1))
def test_a_number_can_be_read_back(number: int) -> None:
    text = encode_u64(number)
    assert decode(text) == number
    assert len(text) == 13
    assert text[0] <= "F"


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_texts_sort_as_their_numbers(one: int, other: int) -> None:
    assert (encode_u64(one) < encode_u64(other)) is (one < other)


@given(st.text(ALPHABET))
def test_canonical_value_stays(text: str) -> None:
    assert fold(text) == text
    assert fold(text.lower()) == text


node_hashes = st.integers(0, 2**64 - 1).map(encode_u64)


@given(node_hashes)
def test_every_hash_reads_as_itself_in_any_case(text: str) -> None:
    assert is_node_hash(text)
    assert parse_node_prefix(text) == parse_node_prefix(text.lower()) == text


@given(node_hashes, st.integers(1, 13))
def test_every_beginning_of_a_hash_is_a_prefix(text: str, length: int) -> None:
    assert parse_node_prefix(text[:length].lower()) == text[:length]


def test_lookalikes_are_forgiven() -> None:
    assert parse_node_prefix("oil0123456789") == "0110123456789"
    assert parse_node_prefix("il") == "11"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GFWKR3TN5V1QA",
        "8FWKR3TN5V1QU",
        "8FWKR3TN5V1QA\n",
        "8FWKR3TN5V1Q\u0131",
        "8FWKR3TN5V1Q\u017f",
        "x" * 10_000,
    ],
)
def test_other_words_are_refused_in_one_short_line(text: str) -> None:
    assert not is_node_hash(text)
    with pytest.raises(NotANodeHash) as caught:
        parse_node_prefix(text)
    assert caught.value.exit_status == 2
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 100


@pytest.mark.parametrize(
    "path", ["a.json", ".state/status.json", "docs/计划/000.md", "a b", ".github/x"]
)
def test_path_of_the_work_is_fine(path: str) -> None:
    assert check_path_below(path) is None


def test_other_paths_are_refused() -> None:
    for path, problem in [
        ("", "names no file"),
        (" ", "names no file"),
        ("a\0b", "names no file"),
        ("a\nb", "names no file"),
        (".", "names no file"),
        ("docs/", "names no file"),
        ("/etc/passwd", "has to be relative to the work directory"),
        ("~/x", "has to be relative to the work directory"),
        ("..", "leads out of the work directory"),
        ("a/../../b", "leads out of the work directory"),
        (".git/config", "is git's own"),
        ("sub/.GIT/hooks/x", "is git's own"),
    ]:
        assert check_path_below(path) == problem


def test_the_format_is_the_second() -> None:
    """FORMAT.md has the history; once it is released, a new number comes with a way to read it."""
    assert FORMAT == 2
