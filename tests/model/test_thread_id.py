import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.names import ALPHABET, NotAThreadId, is_thread_id, parse_thread_prefix

thread_ids = st.builds(
    str.__add__, st.sampled_from("01234567"), st.text(ALPHABET, min_size=25, max_size=25)
)


@given(thread_ids)
def test_every_id_reads_as_itself_in_any_case(text: str) -> None:
    assert is_thread_id(text)
    assert parse_thread_prefix(text) == parse_thread_prefix(text.lower()) == text


@given(thread_ids, st.integers(1, 26))
def test_every_beginning_of_an_id_is_a_prefix(text: str, length: int) -> None:
    assert parse_thread_prefix(text[:length].lower()) == text[:length]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "81J7K9M2XNPQR5VWBCDF8G3H4T",
        "01J7K9M2XNPQR5VWBCDF8G3H4T\n",
        "01J7K9M2XNPQR5VWBCDF8G3H4\u017f",
        "../../../../../etc/passwd.",
    ],
)
def test_other_words_are_refused(text: str) -> None:
    assert not is_thread_id(text)
    with pytest.raises(NotAThreadId) as caught:
        parse_thread_prefix(text)
    assert caught.value.exit_status == 2
    assert caught.value.facts["given"] == text
