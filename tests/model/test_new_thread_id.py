import pytest
from hypothesis import given
from hypothesis import strategies as st

from uwf_git.model.names import build_thread_id, is_thread_id

TIMES = st.integers(0, 2**48 - 1)
ENTROPY = st.binary(min_size=10, max_size=10)


def test_example_of_the_specification() -> None:
    # https://github.com/ulid/javascript: its seedTime example begins so.
    assert build_thread_id(1469918176385, bytes(10)) == "01ARYZ6S410000000000000000"


@given(TIMES, ENTROPY)
def test_every_time_has_an_id(time_ms: int, entropy: bytes) -> None:
    assert is_thread_id(build_thread_id(time_ms, entropy))


@given(st.tuples(TIMES, ENTROPY), st.tuples(TIMES, ENTROPY))
def test_ids_sort_by_time_then_entropy(one: tuple[int, bytes], other: tuple[int, bytes]) -> None:
    assert (build_thread_id(*one) < build_thread_id(*other)) == (one < other)


@pytest.mark.parametrize("time_ms", [2**48, -1])
def test_a_time_that_no_id_holds_is_refused(time_ms: int) -> None:
    with pytest.raises(OverflowError):
        build_thread_id(time_ms, bytes(10))
