import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.names import NotANodeHash, encode_u64, is_node_hash, parse_node_prefix

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
        "8FWKR3TN5V1QAA",
        "GFWKR3TN5V1QA",
        "8FWKR3TN5V1QU",
        "8FWKR3TN5V1QA\n",
        " 8FWKR3TN5V1QA",
        "8FWKR3TN5V1Q\u0131",
        "8FWKR3TN5V1Q\u017f",
        "8FWKR3TN5V1\u00df",
        "\uff18FWKR3TN5V1QA",
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


@pytest.mark.parametrize("text", ["", "G", "8U", "8\n", "8FWKR3TN5V1QAA", "8\u0131"])
def test_no_hash_begins_like_that(text: str) -> None:
    with pytest.raises(NotANodeHash):
        parse_node_prefix(text)


def test_only_the_written_form_is_a_hash() -> None:
    assert not is_node_hash("8fwkr3tn5v1qa")
    assert not is_node_hash("8FWKR3TN5V1Q")
